"""deploy/kubernetes: rendered, and held against schemas, against what a pod may be, and against itself."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tercet.service.settings.settings import Settings
from tests.deploy.kubernetes.hardening import hardening_problems
from tests.deploy.kubernetes.manifests import FOLDER, OVERLAYS, documents, named, of_kind, pods, rendered
from tests.deploy.kubernetes.references import most_replicas, reference_problems, roles_of, settings_of
from tests.deploy.kubernetes.schemas import crd_problems, schema_problems
from tests.docker.conftest import parse
from tests.docker.test_dockerfiles import parse_command

CRDS = {
    "RayService": "ray.io_rayservices.yaml",
    "ServiceMonitor": "monitoring.coreos.com_servicemonitors.yaml",
    "PodMonitor": "monitoring.coreos.com_podmonitors.yaml",
}
DOCKERFILES = {"tercet:cpu": "Dockerfile", "tercet:gpu": "Dockerfile.gpu", "tercet:ray": "Dockerfile.ray"}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {overlay: rendered(FOLDER / overlay) for overlay in OVERLAYS}


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def found(texts: dict[str, str], overlay: str) -> list[dict[str, Any]]:
    return documents(texts[overlay])


def crd_of(kind: str) -> dict[str, Any]:
    """The definition of a custom resource, which is none of ours. Skips where it is not at hand."""
    folder = os.environ.get("TERCET_TEST_CRDS", "")
    path = Path(folder) / CRDS[kind]
    if not folder or not path.is_file():
        pytest.skip(f"needs {CRDS[kind]} of the operator's repository in the folder TERCET_TEST_CRDS")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_kubernetes_takes_it(found: list[dict[str, Any]]) -> None:
    assert schema_problems(found) == []


@pytest.mark.parametrize("kind", CRDS)
def test_operators_take_it(texts: dict[str, str], kind: str) -> None:
    crd = crd_of(kind)
    resources = [each for text in texts.values() for each in of_kind(documents(text), kind)]
    assert resources
    assert [problem for each in resources for problem in crd_problems(each, crd)] == []


def test_pods_are_confined(found: list[dict[str, Any]]) -> None:
    assert hardening_problems(found) == []


def test_what_is_named_is_there(found: list[dict[str, Any]]) -> None:
    assert reference_problems(found) == []


SCHEMA_TYPOS = [
    ("single", "readinessProbe:", "readynessProbe:"),
    ("single", "replicas: 1", "replicas: one"),
    ("gpu-encoders", "maxUnavailable: 1", "maxUnavailible: 1"),
    ("gpu-encoders", "averageValue: 500m", "averageValu: 500m"),
    ("sharded", "publishNotReadyAddresses:", "publishUnreadyAddresses:"),
    ("replicated", "podAntiAffinity:", "podAntiAffinities:"),
    (
        "ray",
        "automountServiceAccountToken: false\n          containers",
        "automountToken: false\n          containers",
    ),
]
REFERENCE_TYPOS = [
    ("single", "serviceName: tercet", "serviceName: server"),
    ("single", "secretName: tercet-keys", "secretName: keys"),
    ("single", "TERCET_READ_KEYS_FILE:", "TERCET_READS_KEYS_FILE:"),
    ("single", "/run/secrets/tercet/metrics", "/run/secrets/tercet/metric"),
    ("single", "targetPort: http", "targetPort: web"),
    ("gpu-encoders", "http://encoder-3.encoder:8080", "http://encoder-4.encoder:8080"),
    ("gpu-encoders", "http://encoder-3.encoder:8080", "http://encoder-3.encoders:8080"),
    ("gpu-encoders", "key: internal", "key: internl"),
    ("gpu-encoders", "kind: StatefulSet\n    name: encoder", "kind: Deployment\n    name: encoder"),
    ("sharded", "http://shard-1.shard:8080", "http://shard-2.shard:8080"),
    ("sharded", "http://shard-1.shard:8080", "http://shard-1.shard:8081"),
    (
        "sharded",
        "app.kubernetes.io/component: shard\n      app.kubernetes.io/part-of: tercet\n  policyTypes",
        "app.kubernetes.io/component: shards\n      app.kubernetes.io/part-of: tercet\n  policyTypes",
    ),
    ("sharded", "TERCET_CHECKPOINT: multi-m3", "TERCET_CHECKPOINT: minilm-m3"),
    ("replicated", "|http://shard-1-1.shard-1:8080", "|http://shard-1-2.shard-1:8080"),
    ("replicated", "subPathExpr: $(ROLE).toml", "subPathExpr: $(ROEL).toml"),
    ("replicated", "follow = ", "folow = "),
    ("replicated", "publish_url = ", "published_url = "),
    ("replicated", "s3://tercet", "s4://tercet"),
    ("replicated", "name: tercet-store", "name: tercet-stores"),
    ("ray", "read_keys_file:", "reads_keys_file:"),
    ("ray", "http://shard-1.shard:8080", "http://shards-1.shard:8080"),
    ("ray", "app.kubernetes.io/name: ray\n  policyTypes", "app.kubernetes.io/name: rays\n  policyTypes"),
]
HARDENING_TYPOS = [
    ("single", "runAsUser: 10001", "runAsUser: 0"),
    ("gpu-encoders", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"),
    ("sharded", "enableServiceLinks: false", "enableServiceLinks: true"),
    ("sharded", "mountPath: /tmp", "mountPath: /temp"),
    ("replicated", "runAsUser: 10001", "runAsUser: 0"),
    (
        "ray",
        "allowPrivilegeEscalation: false\n              capabilities",
        "allowPrivilegeEscalation: true\n              capabilities",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "name", "before", "after"),
    [
        (check, *typo)
        for check, typos in (
            (schema_problems, SCHEMA_TYPOS),
            (reference_problems, REFERENCE_TYPOS),
            (hardening_problems, HARDENING_TYPOS),
        )
        for typo in typos
    ],
)
def test_a_typo_is_found(texts: dict[str, str], check: Any, name: str, before: str, after: str) -> None:
    assert before in texts[name]
    assert check(documents(texts[name].replace(before, after, 1)))


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("RayService", "authOptions:", "authOption:"),
        ("RayService", "groupName: workers", "groupNam: workers"),
        ("RayService", "excludeHeadPodFromServeSvc: true", 'excludeHeadPodFromServeSvc: "yes"'),
        ("RayService", "rayClusterConfig:", "managedBy: somebody\n  rayClusterConfig:"),
        ("ServiceMonitor", "interval: 15s", "intervall: 15s"),
        ("PodMonitor", "podMetricsEndpoints:", "podMetricEndpoints:"),
    ],
)
def test_a_typo_in_a_custom_resource_is_found(
    texts: dict[str, str], kind: str, before: str, after: str
) -> None:
    crd = crd_of(kind)
    (part,) = (each for each in texts["ray"].split("---\n") if f"\nkind: {kind}\n" in each and before in each)
    (resource,) = documents(part.replace(before, after, 1))
    assert crd_problems(resource, crd)


def test_a_pod_has_time_to_pause_to_drain_and_to_finish(found: list[dict[str, Any]]) -> None:
    shutdown = Settings.model_fields["shutdown_seconds"].default
    for name, template in pods(found):
        (container,) = template["spec"]["containers"]
        image = parse(FOLDER.parents[1] / "docker" / DOCKERFILES[container["image"]].replace(".ray", ""))
        drain = float(image.environment()["TERCET_DRAIN_SECONDS"])
        if name.endswith(" head"):
            continue
        command, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
        assert command == "sleep", name
        assert template["spec"]["terminationGracePeriodSeconds"] > float(seconds) + drain + shutdown, name


def test_probes_ask_what_decides(found: list[dict[str, Any]]) -> None:
    for name, template in pods([each for each in found if each["kind"] != "RayService"]):
        (container,) = template["spec"]["containers"]
        paths = {
            probe: container[probe]["httpGet"]["path"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert paths == {"startupProbe": "/health", "livenessProbe": "/health", "readinessProbe": "/ready"}, (
            name
        )


@pytest.mark.slow
def test_commands_are_ours(found: list[dict[str, Any]]) -> None:
    for _, template in pods([each for each in found if each["kind"] != "RayService"]):
        for container in template["spec"]["containers"]:
            parse_command(container["args"])


def test_all_shards_and_all_workers_that_there_can_be_are_named(found: list[dict[str, Any]]) -> None:
    for settings in settings_of(found).values():
        for setting, component in (("shards", "shard"), ("encoder_urls", "encoder")):
            if setting in settings:
                there = [
                    f"http://{name}-{number}.{name}:8080"
                    for name in sets_of(found, component)
                    for number in range(most_replicas(found, name))
                ]
                assert re.split(r"[,|]", settings[setting]) == there


def sets_of(found: list[dict[str, Any]], component: str) -> list[str]:
    """StatefulSets whose pods are this, in the order of their names."""
    return sorted(
        each["metadata"]["name"]
        for each in of_kind(found, "StatefulSet")
        if each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"] == component
    )


def test_a_rollout_and_a_drain_leave_a_server_of_each_shard(texts: dict[str, str]) -> None:
    """Pods of one StatefulSet are replaced one at a time, and one budget lets one of them go."""
    found = documents(texts["replicated"])
    (shards,) = {given["shards"] for given in settings_of(found).values() if "shards" in given}
    sets = {each["metadata"]["name"]: each["spec"] for each in of_kind(found, "StatefulSet")}
    budgets = {each["metadata"]["name"]: each["spec"] for each in of_kind(found, "PodDisruptionBudget")}
    for servers in shards.split(","):
        (name,) = {url.rpartition(".")[2].partition(":")[0] for url in servers.split("|")}
        assert len(servers.split("|")) == sets[name]["replicas"] == 2
        assert "updateStrategy" not in sets[name], "one at a time, the last first"
        assert budgets[name] == {"maxUnavailable": 1, "selector": sets[name]["selector"]}
        writer, replica = roles_of(found)[f"StatefulSet {name}"]
        assert writer["publish_url"] == replica["follow"]
        assert "follow" not in writer


def test_nothing_is_reached_that_no_policy_lets_in(found: list[dict[str, Any]]) -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in of_kind(found, "NetworkPolicy")}
    everything = policies["tercet-nothing"]
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert not everything.keys() & {"ingress", "egress"}
    part = everything["podSelector"]["matchLabels"].items()
    for name, template in pods(found):
        assert part <= template["metadata"]["labels"].items(), name
    for name, spec in policies.items():
        for rule in spec.get("ingress", ()):
            assert rule.get("from"), f"{name} lets anybody in"


def test_autoscalers_ask_for_metrics_that_a_server_has_and_the_adapter_gives(
    texts: dict[str, str],
) -> None:
    (rule,) = yaml.safe_load((FOLDER / "prometheus-adapter.yml").read_text(encoding="utf-8"))["rules"]
    (names,) = re.findall(r'__name__=~"([^"]+)"', rule["seriesQuery"])
    given = re.compile(names)
    metrics = (FOLDER.parents[1] / "docs" / "observe.md").read_text(encoding="utf-8")
    for text in texts.values():
        for each in of_kind(documents(text), "HorizontalPodAutoscaler"):
            for asked in (metric["pods"]["metric"] for metric in each["spec"]["metrics"]):
                assert given.fullmatch(asked["name"])
                (row,) = (line for line in metrics.splitlines() if line.startswith(f"| `{asked['name']}`"))
                assert asked.get("selector", {"matchLabels": {}})["matchLabels"].get("kind", "") in row


def test_ledgers_are_on_volumes_that_outlive_pods(found: list[dict[str, Any]]) -> None:
    for each in of_kind(found, "StatefulSet"):
        if each["metadata"]["name"] == "encoder":
            continue
        claims = {claim["metadata"]["name"] for claim in each["spec"]["volumeClaimTemplates"]}
        (container,) = each["spec"]["template"]["spec"]["containers"]
        mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert mounted["/data"] in claims, named(each)


def test_ray_has_the_environment_and_the_arguments_of_our_deployments(texts: dict[str, str]) -> None:
    """As `tercet deploy ray` has them, but for what is of the head alone."""
    ours = pytest.importorskip("tercet.cluster.ray.serving.session", reason="needs cluster/ray/serving")
    from tercet.cluster.ray.serving.config import deployment_of

    (service,) = of_kind(documents(texts["ray"]), "RayService")
    cluster = service["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        given = {each["name"]: each["value"] for each in container["env"]}
        assert ours.THROUGHPUT.items() <= given.items()
    (application,) = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    assert application["import_path"] == "tercet.cluster.ray.application:build"
    assert deployment_of(application["args"], "args").routers == application["args"]["routers"]


def test_images_are_those_of_the_repository(found: list[dict[str, Any]]) -> None:
    for name, template in pods(found):
        for container in template["spec"]["containers"]:
            assert container["image"] in DOCKERFILES, name


@pytest.mark.slow
def test_replicas_follow_what_a_patch_says(tmp_path: Path) -> None:
    """That of docs/kubernetes.md."""
    documented = (FOLDER.parents[1] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(resources: \[\S+/replicated\].*?)```", documented, re.S)
    overlay = yaml.safe_load(text)
    overlay["resources"] = [os.path.relpath(FOLDER / "replicated", tmp_path)]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay), encoding="utf-8")
    found = documents(rendered(tmp_path))
    assert schema_problems(found) == reference_problems(found) == hardening_problems(found) == []
    for number in (0, 1):
        writer, replica = roles_of(found)[f"StatefulSet shard-{number}"]
        assert writer["publish_url"] == replica["follow"] == f"s3://bucket/shard-{number}"


@pytest.mark.slow
def test_shards_may_use_workers_on_gpus(tmp_path: Path) -> None:
    """As the comment in sharded/kustomization.yaml says."""
    urls = ",".join(f"http://encoder-{number}.encoder:8080" for number in range(4))
    literals = [f"TERCET_ENCODER_URLS={urls}", "TERCET_ENCODER_KEY_FILE=/run/secrets/tercet/internal"]
    overlay = yaml.safe_load((FOLDER / "sharded" / "kustomization.yaml").read_text(encoding="utf-8"))
    overlay["components"].insert(0, "../parts/encoders")
    for listed in ("resources", "components"):
        overlay[listed] = [os.path.relpath(FOLDER / "sharded" / path, tmp_path) for path in overlay[listed]]
    overlay["configMapGenerator"] = [
        {"name": f"{part}-settings", "behavior": "merge", "literals": literals}
        for part in ("router", "shard")
    ]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay), encoding="utf-8")
    found = documents(rendered(tmp_path))
    assert schema_problems(found) == reference_problems(found) == hardening_problems(found) == []
