"""Files of deployments: what they may say, and what is said of what they may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.ray.application import build
from tercet.cluster.ray.errors import DeploymentFileError
from tercet.cluster.ray.serving.application import pieces_of, shards_of
from tercet.cluster.ray.serving.config import deployment_of, read_deployment
from tercet.cluster.ray.serving.roles import encoder_settings, router_settings, shard_settings

WHOLE = """
name: articles
checkpoint: minilm-m3
shards:
  - {data: /var/lib/tercet/0, node: 10.0.0.7}
  - {snapshots: s3://bucket/articles/shards/a-1, num_cpus: 2}
encoders: {min_replicas: 1, max_replicas: 4, num_gpus: 0.25, replica_tokens: 4096}
routers: 2
settings: {api_keys_file: /nowhere/keys, max_concurrent_requests: 100}
"""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    file = tmp_path / "whole.yaml"
    file.write_text(WHOLE)
    return file


@pytest.mark.slow
def test_the_parts_of_a_deployment(whole: Path) -> None:
    deployment = read_deployment(whole)
    pieces = pieces_of(deployment, shards_of(deployment))
    assert [(piece.name, piece.replicas, piece.cpus, piece.gpus) for piece in pieces] == [
        ("encoders", "1 to 4", 1, 0.25),
        ("shard-0", "1", 1, 0),
        ("shard-1", "1", 2, 0),
        ("router", "2", 1, 0),
    ]
    assert pieces[2].what == "s3://bucket/articles/shards/a-1"


def test_keys_are_for_routers_alone(whole: Path) -> None:
    deployment = read_deployment(whole)
    own, followed = deployment.shards
    assert router_settings(deployment)["api_keys_file"] == "/nowhere/keys"
    for settings in (encoder_settings(deployment), shard_settings(deployment, own)):
        assert settings["api_keys_file"] is None
        assert settings["max_concurrent_requests"] == 100
    assert shard_settings(deployment, own)["data"] == "/var/lib/tercet/0"
    follows = shard_settings(deployment, followed)
    assert follows["follow"] == "s3://bucket/articles/shards/a-1"
    assert "data" not in follows


def test_an_encoder_computes_on_the_cpus_that_it_has_of_ray() -> None:
    values: dict[str, Any] = {"shards": [{"data": "/a"}], "encoders": {"num_cpus": 3}}
    assert encoder_settings(deployment_of(values, "a test"))["threads"] == 3
    values["settings"] = {"threads": 2}
    assert encoder_settings(deployment_of(values, "a test"))["threads"] == 2


def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text('checkpoint = "minilm-m3"\n[settings]\nshards = "http://a:8080,http://b:8080"\n')
    deployment = read_deployment(file)
    assert deployment.shards == []
    assert pieces_of(deployment, [])[-1].what == "before http://a:8080,http://b:8080"


SHARD = "shards: [{data: /a}]\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{}", "a file of YAML"),
        ("a.yaml", "shards: [", "is no YAML"),
        ("a.toml", "shards = ", "is no TOML"),
        ("a.yaml", "- a", "no names with values"),
        ("a.yaml", SHARD + "shardz: 1", "shardz: no such field"),
        ("a.yaml", SHARD + "port: 70000", "port is 70000; use at most 65535"),
        ("a.yaml", SHARD + "name: A b", 'name is "A b"; use a string that matches'),
        ("a.yaml", "shards: [{num_cpus: 1}]", "shards.0: give data, a folder, or snapshots"),
        ("a.yaml", "shards: [{num_cpus: -1, data: /a}]", "shards.0.num_cpus is -1; use at least 0"),
        ("a.yaml", "shards: 3", "shards is 3; use a list"),
        ("a.yaml", SHARD + "encoders: {min_replicas: 3, max_replicas: 2}", "max_replicas is 2, less than"),
        ("a.yaml", SHARD + "encoders: {num_gpus: 1.5}", "num_gpus is 1.5: a part of one GPU, or whole ones"),
        ("a.yaml", "{}", "give one of three"),
        ("a.yaml", SHARD + "shard_map: s3://b/c", "give one of three"),
        ("a.yaml", "shard_map: s3:/b", "shard_map: 's3:///b' names no object store; give file:///folder"),
        ("a.yaml", "shards: [{snapshots: 'ftp://b/c'}]", "shards.0.snapshots: 'ftp://b/c' names no object"),
        ("a.yaml", "shards: [{data: /a}, {data: /a}]", "two have the data root /a; give each its own"),
        ("a.yaml", SHARD + "port: 6379", "port is 6379, which is Ray's own (control of the cluster (GCS))"),
        ("a.yaml", SHARD + "router_cpus: .inf", "router_cpus is"),
        ("a.yaml", SHARD + "settings: {prt: 1}", "settings: unknown setting 'prt'"),
        ("a.yaml", SHARD + "settings: {port: 1}", "settings: port is what the deployment makes itself"),
        ("a.yaml", SHARD + "settings: {publish_url: 's3://b/c'}", "publish_url is for tercet serve alone"),
        ("a.yaml", SHARD + "settings: {snapshot_store: 's3://b/c'}", "snapshot_store is for tercet serve"),
        ("a.yaml", SHARD + "settings: {backend: qdrant}", "settings: backend is for tercet serve alone"),
        ("a.yaml", SHARD + "settings: {keyz_file: /a}", "settings: unknown setting 'keyz_file'"),
        ("a.yaml", SHARD + "settings: {max_texts: 0}", "max_texts"),
        ("a.yaml", SHARD + "checkpoint: a\nsettings: {checkpoint: b}", "give checkpoint once"),
    ],
)
def test_a_fault_is_told_with_its_remedy(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(DeploymentFileError) as told:
        read_deployment(file)
    assert message in str(told.value)
    assert str(file) in str(told.value)


def test_arguments_of_an_application_are_checked_alike() -> None:
    with pytest.raises(DeploymentFileError, match="args: routers is 0; use at least 1"):
        build({"routers": 0, "settings": {"shards": "http://a:8080"}})
