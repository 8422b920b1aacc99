"""The board and the alert rules ask for what a server's metrics have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "observability"
METRIC = re.compile(r"\b((?:tercet|process|python)_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"by \(([^)]*)\)\s*\((.*)")
PART = re.compile(r"_(bucket|sum|count|created|total)$")
OF_PROMETHEUS = {"job", "instance", "le"}


def board_expressions() -> list[str]:
    board = json.loads((FOLDER / "grafana-board.json").read_text("utf-8"))
    asked = [each["query"]["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    return asked + [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def alert_expressions() -> list[str]:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def labels_of(tmp_path_factory: pytest.TempPathFactory, built_data: Path, tiny: Any) -> dict[str, set[str]]:
    """Each sample's name that a server gives, with the labels that it bears there."""
    data = shutil.copytree(built_data, tmp_path_factory.mktemp("observed") / "data")
    found: dict[str, set[str]] = defaultdict(set)
    app = create_app(Settings(data=data, flush_documents=1), tiny)
    with real_server(app) as url, httpx.Client(base_url=url) as client:
        client.post("/search", json={"collection": "demo", "query": "tea"})
        documents = {"documents": [{"id": "new", "text": "hot water"}]}
        client.put("/collections/demo/documents", json=documents)
        client.delete("/collections/demo/documents/tea")
        late = {"X-Request-Timeout": "0.000000001"}
        client.post("/search", json={"collection": "demo", "query": "tea"}, headers=late)
        text = client.get("/metrics").text
    for family in text_string_to_metric_families(text):
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        for suffix in suffixes.get(family.type, [""]):
            found[family.name + suffix] |= set()
        for sample in family.samples:
            found[sample.name] |= set(sample.labels)
    return found


@pytest.mark.parametrize("expression", [*board_expressions(), *alert_expressions()])
def test_metrics_and_their_labels_exist(expression: str, labels_of: dict[str, set[str]]) -> None:
    metrics = METRIC.findall(expression)
    assert metrics or expression.startswith("up{")
    for name, selector in metrics:
        assert name in labels_of
        asked = set(LABEL.findall(selector)) - OF_PROMETHEUS
        if labels_of[name]:
            assert asked <= labels_of[name]
    for grouped, rest in GROUPED.findall(expression):
        (name, _), *_ = METRIC.findall(rest)
        if labels_of[name]:
            assert set(re.split(r",\s*", grouped)) - OF_PROMETHEUS <= labels_of[name]


def test_every_metric_of_ours_is_on_the_board(labels_of: dict[str, set[str]]) -> None:
    shown = {name for expression in board_expressions() for name, _ in METRIC.findall(expression)}
    ours = {name for name in labels_of if name.startswith("tercet_")}
    assert {PART.sub("", name) for name in ours} == {
        PART.sub("", name) for name in shown if name.startswith("tercet_")
    }


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, which comes with Prometheus")
def test_prometheus_takes_all_expressions(tmp_path: Path) -> None:
    asked = [each.replace("$__rate_interval", "5m") for each in board_expressions() if "label_" not in each]
    rules = [{"record": f"board:panel{place}", "expr": each} for place, each in enumerate(asked)]
    board = tmp_path / "board.yml"
    board.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}), "utf-8")
    for command in (["rules", str(board)], ["rules", "alerts.yml"], ["config", "prometheus.yml"]):
        checked = subprocess.run(["promtool", "check", *command], cwd=FOLDER, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
