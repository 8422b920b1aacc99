"""What both images promise, read from the Dockerfiles."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from tercet.cli.main import application
from tercet.service.settings.settings import Settings

PINNED = re.compile(r"^PYTHON=docker\.io/library/python:3\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}$")


def parse_command(words: list[str]) -> None:
    """Parses the words after `tercet` as the command line does, without running anything.

    Raises KeyError for an unknown command and click.UsageError for a flag or argument that it lacks.
    """
    command: Any = typer.main.get_command(application(words))
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    command.make_context("tercet", rest)


def test_the_base_image_is_pinned_by_digest(dockerfile: Any) -> None:
    base, *others = dockerfile.all("ARG")
    assert PINNED.match(base.value), base.value
    assert base.stage == -1, "an argument of a stage is unknown to FROM"
    assert all(other.stage >= 0 for other in others)
    assert [entry.value for entry in dockerfile.all("FROM")] == ["${PYTHON} AS build", "${PYTHON}"]


def test_both_images_stand_on_the_same_base(cpu: Any, gpu: Any) -> None:
    assert cpu.all("ARG")[0].value == gpu.all("ARG")[0].value


def test_every_copied_path_exists(dockerfile: Any, root: Path) -> None:
    missing = [source for source in dockerfile.context_sources() if not (root / source).exists()]
    assert not missing


def test_the_build_context_holds_exactly_what_is_copied(cpu: Any, gpu: Any, root: Path) -> None:
    lines = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*", "everything is left out unless named"
    named = {pattern[1:] for pattern in patterns if pattern.startswith("!")}
    assert named == set(cpu.context_sources()) | set(gpu.context_sources())


def test_all_packages_of_the_distribution_are_copied(dockerfile: Any, root: Path) -> None:
    links = (root / "src" / "tercet").iterdir()
    packages = {link.resolve().relative_to(root).as_posix() for link in links if link.is_symlink()}
    packages = packages - {"checkpoints"} | {"checkpoints/minilm-m3", "checkpoints/multi-m3"}
    assert packages <= set(dockerfile.context_sources())


def test_the_image_carries_the_version_of_the_distribution(dockerfile: Any, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    labels = dict(word.partition("=")[::2] for word in dockerfile.last("LABEL").words)
    assert labels["org.opencontainers.image.version"] == project["version"]
    assert labels["org.opencontainers.image.licenses"] == project["license"]
    assert {"org.opencontainers.image.title", "org.opencontainers.image.description"} <= set(labels)
    for label, argument in (("base.name", "PYTHON"), ("revision", "REVISION"), ("source", "SOURCE")):
        assert labels[f"org.opencontainers.image.{label}"] == f"${{{argument}}}"
        assert any(
            each.stage == dockerfile.last("LABEL").stage and each.value.partition("=")[0] == argument
            for each in dockerfile.all("ARG")
        ), f"{argument} is unknown to the stage"


def test_two_builds_of_one_revision_give_the_same_files(dockerfile: Any) -> None:
    """The base by its digest, packages by the lock, and a time that wheels and bytecode go by."""
    order = [(entry.keyword, entry.value.partition("=")[0].split()[0]) for entry in dockerfile.instructions]
    assert order.index(("ARG", "SOURCE_DATE_EPOCH")) < order.index(("RUN", "pip"))
    installs = [entry.value for entry in dockerfile.all("RUN") if entry.value.startswith("pip install")]
    assert all("--constraint constraints.txt" in each for each in installs)


def test_it_runs_as_a_user_by_number_who_owns_what_it_writes_to(dockerfile: Any) -> None:
    assert dockerfile.last("USER").value == "10001:10001", "Kubernetes' runAsNonRoot refuses a name"
    (created,) = [entry.value for entry in dockerfile.all("RUN") if "useradd" in entry.value]
    assert "groupadd --system --gid 10001 tercet " in created
    assert "useradd --system --uid 10001 --gid tercet " in created
    owned = created.split("install --directory --owner=tercet --group=tercet", 1)[1].split()
    settings = dockerfile.environment()
    data = settings["TERCET_DATA"]
    assert {data, f"{data}/sources", f"{data}/adapters"} <= set(owned)
    assert str(Path(settings["HF_HOME"]).parent) in owned
    order = [entry.keyword for entry in dockerfile.instructions]
    assert order.index("USER") < order.index("ENTRYPOINT")


def test_it_checks_its_health(dockerfile: Any) -> None:
    check = dockerfile.last("HEALTHCHECK").value
    assert "/opt/tercet/docker/healthcheck.py" in check
    assert "docker/healthcheck.py" in dockerfile.context_sources()


def test_the_entrypoint_is_the_installed_command(dockerfile: Any, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dockerfile.last("ENTRYPOINT").words == [next(iter(project["scripts"]))], "so that signals reach it"
    assert dockerfile.environment()["PATH"].startswith("/opt/tercet/venv/bin:")


@pytest.mark.slow
def test_its_commands_exist_with_the_flags_used(dockerfile: Any) -> None:
    parse_command(dockerfile.last("CMD").words)
    lines = [part.strip() for entry in dockerfile.all("RUN") for part in entry.value.split("&&")]
    used = [shlex.split(line)[1:] for line in lines if line.startswith("tercet ")]
    assert [words[0] for words in used] == ["collection", "search"], "these prove it"
    for words in used:
        parse_command(words)


def test_commands_of_the_compose_file_exist(root: Path) -> None:
    document = yaml.safe_load((root / "docker-compose.yml").read_text(encoding="utf-8"))
    commands = [service["command"] for service in document["services"].values() if "command" in service]
    assert commands
    for words in commands:
        parse_command(words)


def test_its_settings_are_settings_of_the_service(dockerfile: Any) -> None:
    named = {name for name in dockerfile.environment() if name.startswith("TERCET_")}
    known = {f"TERCET_{name.upper()}" for name in Settings.model_fields}
    assert named <= known
    assert {"TERCET_HOST", "TERCET_DATA"} <= named


def test_the_default_checkpoint_is_inside(dockerfile: Any) -> None:
    copied = {tuple(entry.words) for entry in dockerfile.all("COPY")}
    assert ("checkpoints/minilm-m3", "checkpoints/minilm-m3") in copied
    installs = [entry.value for entry in dockerfile.all("RUN") if "dist/*.whl" in entry.value]
    assert installs == [
        "pip wheel --no-deps --wheel-dir dist . && pip install --no-deps --force-reinstall dist/*.whl"
    ]


def test_no_secret_is_written_into_it(dockerfile: Any) -> None:
    for entry in dockerfile.instructions:
        if entry.keyword in {"ENV", "ARG"}:
            assert not re.search(r"KEY|TOKEN|SECRET|PASSWORD", entry.value), entry.value
    assert not dockerfile.all("ADD"), "COPY takes only files of the build context"


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_it_installs_serving_traces_and_sources_from_the_lock(
    name: str, request: pytest.FixtureRequest
) -> None:
    image = request.getfixturevalue(name)
    (install,) = [entry.value for entry in image.all("RUN") if entry.value.startswith("pip install")]
    assert f"'.[{name},otel,parquet,files]'" in install
    assert "--constraint constraints.txt" in install
    assert "--editable" not in install


def test_ray_comes_on_top_of_our_image_from_the_lock(ray: Any, cpu: Any, root: Path) -> None:
    """Its other settings, its user and its packages are those of the image below, with the same wheel."""
    assert ray.last("ARG").value == "BASE=tercet:cpu"
    assert [entry.value for entry in ray.all("FROM")] == ["${BASE}"]
    (install,) = (entry.value for entry in ray.all("RUN"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (wanted,) = project["project"]["optional-dependencies"]["ray"]
    assert f"'{wanted}'" in install
    assert "--constraint /tmp/constraints.txt" in install
    assert "--only-binary :all:" in install
    assert "--python /opt/tercet/venv/bin/python" in install
    assert ray.context_sources() == ["constraints.txt"]
    assert [entry.value for entry in ray.all("USER")] == ["root", cpu.last("USER").value]
    assert ray.environment() == {"RAY_USAGE_STATS_ENABLED": "0"}
    assert ray.last("ENTRYPOINT").words == []
    program, *words = ray.last("CMD").words
    assert [program] == cpu.last("ENTRYPOINT").words
    parse_command(words)
