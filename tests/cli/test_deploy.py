"""`tercet deploy ray`, as far as no cluster is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

FILE = """
name: articles
checkpoint: minilm-m3
port: 9000
settings: {shards: "http://a:8080,http://b:8080"}
encoders: {min_replicas: 1, max_replicas: 3, num_gpus: 0.5}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "articles.yaml"
    path.write_text(FILE)
    return str(path)


def test_a_dry_run_says_what_would_run(tercet: Run, file: str) -> None:
    told = tercet("deploy", "ray", file, "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "articles on Ray (local), port 9000" in told.stdout
    assert [line.split()[:4] for line in told.stdout.splitlines()[2:]] == [
        ["encoders", "1", "to", "3"],
        ["router", "1", "1", "0"],
    ]


def test_a_dry_run_as_json(tercet: Run, file: str) -> None:
    told = json.loads(
        tercet("deploy", "ray", file, "--dry-run", "--json", "--address", "10.0.0.7:6379").stdout
    )
    assert told["address"] == "10.0.0.7:6379"
    assert told["deployments"][0] == {
        "name": "encoders",
        "replicas": "1 to 3",
        "cpus": 1,
        "gpus": 0.5,
        "what": "checkpoint minilm-m3",
    }
    assert told["port"] == 9000


def test_a_deployment_of_this_machine_is_not_taken_down_by_another_command(tercet: Run, file: str) -> None:
    refused = tercet("deploy", "ray", file, "--down")
    assert refused.returncode == 1
    assert "ends with its command" in refused.stderr


def test_a_fault_of_the_file_is_one_line(tercet: Run, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(FILE.replace("max_replicas: 3", "max_replicas: 0"))
    refused = tercet("deploy", "ray", str(path))
    assert refused.returncode == 1
    assert refused.stderr == f"Error: {path}: encoders.max_replicas is 0; use at least 1\n"


def test_a_cluster_that_is_not_there_is_an_error(tercet: Run, file: str, tmp_path: Path) -> None:
    path = tmp_path / "articles.yaml"
    path.write_text(FILE + f"ray: {{address: '127.0.0.1:1', token_file: {tmp_path / 'token'}}}\n")
    variables = {"RAY_AUTH_MODE": "", "RAY_AUTH_TOKEN": "", "RAY_AUTH_TOKEN_PATH": ""}
    refused = tercet("deploy", "ray", str(path), "--down", **variables)
    assert refused.returncode == 1
    assert "Ray at 127.0.0.1:1 cannot be reached" in refused.stderr
