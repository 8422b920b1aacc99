"""Files of deployments: what they may say, and what is said of what they may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.ray.application import build
from tercet.cluster.ray.errors import DeploymentFileError
from tercet.cluster.ray.serving.application import encoder_settings, pieces_of, router_settings
from tercet.cluster.ray.serving.config import deployment_of, read_deployment

WHOLE = """
name: articles
checkpoint: minilm-m3
encoders: {min_replicas: 1, max_replicas: 4, num_gpus: 0.25, replica_tokens: 4096}
routers: 2
settings: {shards: s3://bucket/articles, api_keys_file: /nowhere/keys, max_concurrent_requests: 100}
"""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    file = tmp_path / "whole.yaml"
    file.write_text(WHOLE)
    return file


def test_the_parts_of_a_deployment(whole: Path) -> None:
    pieces = pieces_of(read_deployment(whole))
    assert [(piece.name, piece.replicas, piece.cpus, piece.gpus) for piece in pieces] == [
        ("encoders", "1 to 4", 1, 0.25),
        ("router", "2", 1, 0),
    ]
    assert pieces[1].what == "before s3://bucket/articles"


def test_keys_and_shards_are_for_routers_alone(whole: Path) -> None:
    deployment = read_deployment(whole)
    routers, encoders = router_settings(deployment), encoder_settings(deployment)
    assert (routers["api_keys_file"], routers["shards"]) == ("/nowhere/keys", "s3://bucket/articles")
    assert (encoders["api_keys_file"], encoders["shards"]) == (None, ())
    assert encoders["max_concurrent_requests"] == 100


def test_an_encoder_computes_on_the_cpus_that_it_has_of_ray() -> None:
    values: dict[str, Any] = {"settings": {"shards": "http://a:8080"}, "encoders": {"num_cpus": 3}}
    assert encoder_settings(deployment_of(values, "a test"))["threads"] == 3
    values["settings"]["threads"] = 2
    assert encoder_settings(deployment_of(values, "a test"))["threads"] == 2


def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text('checkpoint = "minilm-m3"\n[settings]\nshards = "http://a:8080,http://b:8080"\n')
    assert pieces_of(read_deployment(file))[-1].what == "before http://a:8080,http://b:8080"


SETTINGS = "settings: {shards: 'http://a:8080'}\n"


def among(setting: str) -> str:
    """A file with a setting more."""
    return SETTINGS.replace("}", f", {setting}}}")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{}", "a file of YAML"),
        ("a.yaml", "settings: [", "is no YAML"),
        ("a.toml", "settings = ", "is no TOML"),
        ("a.yaml", "- a", "no names with values"),
        ("a.yaml", SETTINGS + "shardz: 1", "shardz: no such field"),
        ("a.yaml", SETTINGS + "port: 70000", "port is 70000; use at most 65535"),
        ("a.yaml", SETTINGS + "name: A b", 'name is "A b"; use a string that matches'),
        ("a.yaml", "settings: 3", "settings is 3; use an object"),
        ("a.yaml", SETTINGS + "encoders: {min_replicas: 3, max_replicas: 2}", "max_replicas is 2, less than"),
        (
            "a.yaml",
            SETTINGS + "encoders: {num_gpus: 1.5}",
            "num_gpus is 1.5: a part of one GPU, or whole ones",
        ),
        ("a.yaml", "{}", "settings: shards is missing: start each shard as a server"),
        ("a.yaml", SETTINGS + "router_cpus: .inf", "router_cpus is"),
        ("a.yaml", among("prt: 1"), "settings: unknown setting 'prt'"),
        ("a.yaml", among("port: 1"), "settings: port is what the deployment makes itself"),
        ("a.yaml", among("publish_url: 's3://b/c'"), "publish_url is for tercet serve alone"),
        ("a.yaml", among("snapshot_store: 's3://b/c'"), "snapshot_store is for tercet serve"),
        ("a.yaml", among("backend: qdrant"), "settings: backend is for tercet serve alone"),
        ("a.yaml", among("keyz_file: /a"), "settings: unknown setting 'keyz_file'"),
        ("a.yaml", among("max_texts: 0"), "max_texts"),
        ("a.yaml", among("checkpoint: b") + "checkpoint: a", "give checkpoint once"),
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
