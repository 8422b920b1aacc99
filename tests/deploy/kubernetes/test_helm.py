"""deploy/helm: the chart gives what Kustomize gives, and what its values say."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from tercet.service.keys.key_file import read_key_file
from tercet.service.keys.keys import digest_of
from tests.deploy.kubernetes.api import kubernetes_api
from tests.deploy.kubernetes.hardening import hardening_problems
from tests.deploy.kubernetes.manifests import FOLDER, documents, named, of_kind, pods, rendered
from tests.deploy.kubernetes.references import SECRETS, chosen_by, reference_problems, settings_of
from tests.deploy.kubernetes.schemas import schema_problems

CHART = FOLDER.parent / "helm" / "tercet"
LAYOUTS = ("single", "gpu-encoders", "sharded", "replicated")
HASH = re.compile(r"(name: (?:[a-z]+-settings|shard-roles-\d))(?:-\d)?-\w{10}\b")
OWN = re.compile(r"\btercet-((?:to-)?(?:shard|router|encoder|server)\b)")
IMAGE = {"repository": "tercet", "tag": "cpu", "gpuTag": "gpu"}
KUSTOMIZED = {"secret": "tercet-keys", "monitors": True, "autoscalers": True, "policies": True}

SPREAD = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
PLACED: dict[str, Any] = {
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "search", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [SPREAD],
    "podAnnotations": {"team": "search"},
    "serviceAccount": {"create": True, "annotations": {"role": "store"}},
    "ingress": {"enabled": True, "className": "nginx", "host": "example.com", "path": "/tercet"},
}

charts = pytest.importorskip("helm_python.chart", reason="needs helm-python-sdk")
clusters = pytest.importorskip("helm_python.config", reason="needs helm-python-sdk")


def of_chart(folder: Path = CHART, **values: Any) -> str:
    """The manifests that `helm template` gives with these values."""
    with charts.Chart.load(folder) as chart:
        files = chart.render(values={"image": IMAGE, **values}, name="tercet", namespace="search")
    return "\n---\n".join(text for path, text in files.items() if path.endswith(".yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_gives_what_kustomize_gives(layout: str) -> None:
    """But for the release in names, the hashes of ConfigMaps, labels that nothing selects, and the order of
    what has names of its own.
    """
    ours, theirs = (
        [ordered(each) for each in documents(HASH.sub(r"\1", OWN.sub(r"\1", text)))]
        for text in (of_chart(layout=layout, **KUSTOMIZED), rendered(FOLDER / layout))
    )
    for each in of_kind(theirs, "ConfigMap", "PodDisruptionBudget"):
        each["metadata"].pop("labels", None)
    for each in of_kind(theirs, "StatefulSet"):
        for claim in each["spec"]["volumeClaimTemplates"]:
            claim["metadata"].pop("labels", None)
    assert {named(each): each for each in ours} == {named(each): each for each in theirs}


def ordered(value: Any) -> Any:
    """Lists of named items in the order of their names."""
    if isinstance(value, dict):
        return {name: ordered(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted(
            map(ordered, value), key=lambda each: each.get("name", "") if isinstance(each, dict) else ""
        )
    return value


def test_it_has_no_fault() -> None:
    report = charts.lint(CHART, strict=True)
    assert report["errors"] == []
    assert {each["error"] for each in report["messages"]} <= {"icon is recommended"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {"layout": "sharded", "shards": {"replicas": 5}, "policies": True},
        {"layout": "replicated", "shards": {"replicas": 3}, "replicas": {"follow": "gs://b/c-"}, **PLACED},
        {"layout": "gpu-encoders", "encoders": {"maxReplicas": 7}, "autoscalers": True, "monitors": True},
        {"layout": "single", "pullSecrets": ["registry"], "storageClass": "fast", **PLACED},
    ],
)
def test_what_its_values_change_holds(values: dict[str, Any]) -> None:
    found = documents(of_chart(**values))
    assert schema_problems(found) == reference_problems(found) == hardening_problems(found) == []


def test_values_go_where_they_should() -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    found = documents(
        of_chart(
            layout="sharded",
            image={"repository": "registry.example.com/tercet", "tag": "1"},
            shards={"replicas": 3, "storage": "1Ti", "resources": resources},
            settings={"TERCET_LOG_LEVEL": "debug"},
            storageClass="fast",
            secret="other",
        )
    )
    workloads = {
        each["metadata"]["name"]: each["spec"] for each in of_kind(found, "StatefulSet", "Deployment")
    }
    assert (workloads["tercet-shard"]["replicas"], workloads["tercet-router"]["replicas"]) == (3, 2)
    (claim,) = workloads["tercet-shard"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Ti"
    assert claim["spec"]["storageClassName"] == "fast"
    assert workloads["tercet-shard"]["template"]["spec"]["containers"][0]["resources"] == resources
    for _, template in pods(found):
        assert template["spec"]["containers"][0]["image"] == "registry.example.com/tercet:1"
    for settings in settings_of(found).values():
        assert settings["log_level"] == "debug"
    assert settings_of(found)["Deployment tercet-router"]["shards"].count("http://tercet-shard-") == 3
    assert "secretName: other" in of_chart(secret="other")


def test_pods_are_placed_as_values_say() -> None:
    values = {**PLACED, "layout": "gpu-encoders", "encoders": {"nodeSelector": {"gpu": "h200"}}}
    found = dict(pods(documents(of_chart(**values))))
    server, encoder = found["StatefulSet tercet"], found["StatefulSet tercet-encoder"]
    for name, template in (("tercet", server), ("tercet-encoder", encoder)):
        spec = template["spec"]
        (constraint,) = spec["topologySpreadConstraints"]
        selected = {"matchLabels": {"app.kubernetes.io/name": name}}
        assert constraint == {**SPREAD, "labelSelector": selected}
        assert PLACED["tolerations"][0] in spec["tolerations"]
        assert spec["affinity"] == PLACED["affinity"]
        assert spec["serviceAccountName"] == "tercet"
        assert template["metadata"]["annotations"] == {"team": "search"}
    assert server["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert encoder["spec"]["nodeSelector"] == {"gpu": "h200"}, "its own in the place of that of all"
    assert len(encoder["spec"]["tolerations"]) == 2, "that of GPUs stays"


def test_keda_scales_by_what_the_autoscalers_go_by() -> None:
    values = {"layout": "gpu-encoders", "autoscalers": True, "encoders": {"maxReplicas": 7}}
    (before,) = of_kind(documents(of_chart(**values)), "HorizontalPodAutoscaler")
    found = documents(of_chart(**values, keda={"prometheus": "http://prometheus:9090"}))
    assert not of_kind(found, "HorizontalPodAutoscaler")
    (scaled,) = of_kind(found, "ScaledObject")
    spec = scaled["spec"]
    assert spec["scaleTargetRef"] == before["spec"]["scaleTargetRef"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 7)
    assert spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == before["spec"]["behavior"]
    pods_of = 'namespace="search",pod=~"tercet-encoder-.+"'
    assert [(each["type"], each["metricType"], each["metadata"]) for each in spec["triggers"]] == [
        (
            "prometheus",
            "AverageValue",
            {"serverAddress": "http://prometheus:9090", "query": query, **threshold},
        )
        for query, threshold in (
            (f"sum(tercet_queue_tokens{{{pods_of}}})", {"threshold": "16000"}),
            (
                f'sum(tercet_predicted_wait_seconds{{{pods_of},kind="documents"}})',
                {"threshold": "0.5"},
            ),
        )
    ]


def test_an_ingress_leads_to_what_clients_call() -> None:
    found = documents(of_chart(layout="sharded", **PLACED))
    (ingress,) = of_kind(found, "Ingress")
    (rule,) = ingress["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert (rule["host"], path["path"]) == ("example.com", "/tercet")
    assert path["backend"]["service"] == {"name": "tercet-router", "port": {"name": "http"}}
    assert settings_of(found)["Deployment tercet-router"]["root_path"] == "/tercet"
    assert "root_path" not in settings_of(found)["StatefulSet tercet-shard"]


def test_defaults_ask_an_empty_cluster_for_nothing_that_it_lacks() -> None:
    found = documents(of_chart())
    assert {each["kind"] for each in found} == {"ConfigMap", "Secret", "Service", "StatefulSet"}
    (secret,) = of_kind(found, "Secret")
    assert set(secret["stringData"]) == {"admin", *SECRETS["tercet-keys"]}
    assert schema_problems(found) == reference_problems(found) == hardening_problems(found) == []


def test_two_releases_share_no_name_and_select_no_pod_of_each_other() -> None:
    with charts.Chart.load(CHART) as chart:
        first, second = (
            documents("\n---\n".join(text for path, text in files.items() if path.endswith(".yaml")))
            for files in (
                chart.render({"image": IMAGE, **KUSTOMIZED, "layout": "replicated"}, name=name)
                for name in ("news", "law")
            )
        )
    assert not set(map(named, first)) & set(map(named, second))
    strangers = [template["metadata"]["labels"] for _, template in pods(second)]
    for each in of_kind(first, "StatefulSet", "Deployment", "PodDisruptionBudget"):
        assert not any(chosen_by(each["spec"]["selector"], labels) for labels in strangers), named(each)
    for each in of_kind(first, "NetworkPolicy"):
        assert not any(chosen_by(each["spec"]["podSelector"], labels) for labels in strangers), named(each)


def test_an_image_must_be_named() -> None:
    with pytest.raises(Exception, match=r"image\.repository, image\.tag must be set: .* --set image\."):
        of_chart(image={"repository": "", "tag": ""})
    with pytest.raises(Exception, match=r"image\.gpuTag must be set"):
        of_chart(layout="gpu-encoders", image={"repository": "tercet", "tag": "cpu", "gpuTag": ""})


def test_keys_that_were_made_let_in_and_stay_at_an_upgrade(tmp_path: Path) -> None:
    """The second time from a server that has the Secret, as Kubernetes' API answers."""
    (secret,) = of_kind(documents(of_chart()), "Secret")
    keys = tmp_path / "keys.jsonl"
    keys.write_text(secret["stringData"]["keys.jsonl"] + "\n")
    admin = read_key_file(keys)[digest_of(secret["stringData"]["admin"])]
    assert (admin.right, admin.key) == ("admin", "admin")
    kept = {name: base64.b64encode(text.encode()).decode() for name, text in secret["stringData"].items()}
    with (
        kubernetes_api({"tercet-keys": kept}, "tercet", "search") as configuration,
        clusters.Config(
            kubeconfig_content=configuration, namespace="search", storage_driver="memory"
        ) as cluster,
    ):
        made = cluster.install(CHART, "tercet", {"image": IMAGE}, dry_run="server")["manifest"]
    (again,) = of_kind(documents(made), "Secret")
    assert again["data"] == kept


@pytest.mark.parametrize(
    "values",
    [
        {"layout": "cluster"},
        {"shard": {"replicas": 3}},
        {"shards": {"replicas": 0}},
        {"replicas": {"follow": "/srv/snapshots"}},
        {"settings": {"LOG_LEVEL": "debug"}},
    ],
)
def test_a_typo_in_values_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="schema"):
        of_chart(**values)


def test_a_packed_chart_has_its_parts_inside(tmp_path: Path) -> None:
    """In the repository they are a link."""
    with charts.Chart.load(CHART) as chart:
        packed = Path(chart.save(tmp_path))
    values = {"layout": "sharded", "secret": "tercet-keys"}
    assert HASH.sub(r"\1", of_chart(packed, **values)) == HASH.sub(r"\1", of_chart(**values))
