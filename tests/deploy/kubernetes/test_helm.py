"""deploy/helm: the chart gives what Kustomize gives, and what its values say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.kubernetes.hardening import hardening_problems
from tests.deploy.kubernetes.manifests import FOLDER, documents, named, of_kind, pods, rendered
from tests.deploy.kubernetes.references import reference_problems, settings_of
from tests.deploy.kubernetes.schemas import schema_problems

CHART = FOLDER.parent / "helm" / "tercet"
LAYOUTS = ("single", "gpu-encoders", "sharded", "replicated")
HASH = re.compile(r"(name: \w+-settings)-\w{10}\b")

charts = pytest.importorskip("helm_python.chart", reason="needs helm-python-sdk")


def of_chart(folder: Path = CHART, **values: Any) -> str:
    """What `helm template` gives with these values."""
    with charts.Chart.load(folder) as chart:
        return "\n---\n".join(chart.render(values=values, name="tercet", namespace="tercet").values())


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_gives_what_kustomize_gives(layout: str) -> None:
    """But for the hashes in the names of ConfigMaps, and the order of what has names of its own."""
    ours, theirs = (
        {named(each): ordered(each) for each in documents(HASH.sub(r"\1", text))}
        for text in (of_chart(layout=layout), rendered(FOLDER / layout))
    )
    assert ours == theirs


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
        {"layout": "sharded", "shards": {"replicas": 5}, "autoscalers": False, "monitors": False},
        {"layout": "replicated", "shards": {"replicas": 3}, "replicas": {"follow": "gs://b/c-"}},
        {"layout": "gpu-encoders", "encoders": {"maxReplicas": 7}, "policies": False},
        {"layout": "single", "secret": "tercet-keys", "pullSecrets": ["registry"], "storageClass": "fast"},
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
            images={"cpu": "registry.example.com/tercet:1"},
            shards={"replicas": 3, "storage": "1Ti", "resources": resources},
            settings={"TERCET_LOG_LEVEL": "debug"},
            storageClass="fast",
            secret="other",
            autoscalers=False,
        )
    )
    workloads = {
        each["metadata"]["name"]: each["spec"] for each in of_kind(found, "StatefulSet", "Deployment")
    }
    assert (workloads["shard"]["replicas"], workloads["router"]["replicas"]) == (3, 2)
    (claim,) = workloads["shard"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Ti"
    assert claim["spec"]["storageClassName"] == "fast"
    assert workloads["shard"]["template"]["spec"]["containers"][0]["resources"] == resources
    for _, template in pods(found):
        assert template["spec"]["containers"][0]["image"] == "registry.example.com/tercet:1"
    for settings in settings_of(found).values():
        assert settings["log_level"] == "debug"
    assert settings_of(found)["Deployment router"]["shards"].count("http://shard-") == 3
    assert "secretName: other" in of_chart(secret="other")


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
    assert HASH.sub(r"\1", of_chart(packed, layout="sharded")) == HASH.sub(r"\1", of_chart(layout="sharded"))
