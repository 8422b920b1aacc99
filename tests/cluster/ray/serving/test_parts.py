"""What a deployment starts with: the token's file, ports and variables, and how many encoders there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.ray.errors import DeploymentError, TokenFileError
from tercet.cluster.ray.serving.application import shards_of
from tercet.cluster.ray.serving.autoscaling import QUEUED_TOKENS, ByQueuedTokens
from tercet.cluster.ray.serving.config import deployment_of
from tercet.cluster.ray.serving.environment import serve_environment, start_flags
from tercet.cluster.ray.serving.in_process import InProcess
from tercet.cluster.ray.serving.ports import CALLS, ports_of
from tercet.cluster.ray.serving.token_file import hold_token
from tercet.cluster.shards.map import ShardPlace, publish_map
from tercet.cluster.shards.placement import Placement
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # so that what is set is unset in the end


def test_a_new_token_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "ray" / "token"
    hold_token(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    token = file.read_text()
    assert len(token) == 64
    hold_token(file)
    assert file.read_text() == token


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("known")
    file.chmod(0o644)
    with pytest.raises(TokenFileError, match="mode 0644, so that others may read it"):
        hold_token(file)


def test_an_empty_token_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    with pytest.raises(TokenFileError, match="is empty"):
        hold_token(file)


def test_no_port_is_named_twice_but_those_that_the_system_gives() -> None:
    ports = [port for port in ports_of(8000) if port is not CALLS]
    numbers = [number for port in ports for number in port.numbers]
    assert len(numbers) == len(set(numbers))


def test_each_port_is_set_by_a_flag_or_a_variable() -> None:
    flags = {flag.partition("=")[0] for flag in start_flags(head=True)}
    named = {port.flag for port in ports_of(8000)} - {"port", ""}
    assert named <= flags | set(serve_environment())
    assert "--port" not in " ".join(start_flags(head=False))


def test_sockets_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    paths = [value for value in serve_environment(tmp_path).values() if value.startswith("/")]
    assert len(paths) == 5
    assert all(Path(path).is_relative_to(tmp_path) for path in paths)


@pytest.mark.parametrize(
    ("told", "replicas"),
    [({}, 2), ({"a": 0.0, "b": 0.0}, 1), ({"a": 900.0, "b": 100.0}, 1), ({"a": 900.0, "b": 101.0}, 2)],
)
def test_encoders_are_as_many_as_waiting_tokens_ask_for(told: dict[str, float], replicas: int) -> None:
    context = SimpleNamespace(aggregated_metrics={QUEUED_TOKENS: told} if told else {}, target_num_replicas=2)
    assert ByQueuedTokens(replica_tokens=1000)(context) == (replicas, {})


def test_the_documentation_lists_every_port() -> None:
    text = (Path(__file__).parents[4] / "docs" / "ray-serve.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d-]+)( \(head\))? \| (token|keys|none) \| (.+) \|$", text, re.M)
    assert rows == [
        (port.shown, " (head)" if port.head_only else "", port.guard, port.purpose) for port in ports_of(8000)
    ]


def test_shards_are_those_of_the_newest_map(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/articles")
    first = publish_map(store, "articles", [ShardPlace("shards/a-0")], Placement.evenly(1), None)
    places = [ShardPlace("shards/b-0"), ShardPlace("shards/b-1")]
    publish_map(store, "articles", places, Placement.evenly(2), first)
    deployment = deployment_of({"shard_map": f"file://{tmp_path}/articles/"}, "a test")
    assert [shard.snapshots for shard in shards_of(deployment)] == [
        f"file://{tmp_path}/articles/shards/b-{number}" for number in range(2)
    ]
    nowhere = deployment_of({"shard_map": f"file://{tmp_path}/nothing"}, "a test")
    with pytest.raises(DeploymentError, match="has no map of shards"):
        shards_of(nowhere)


async def test_a_request_is_answered_without_http(tmp_path: Path, tiny: Encoder) -> None:
    app = InProcess(create_app(Settings(data=tmp_path), tiny))
    await app.check()
    sent = {"Content-Type": "application/json"}
    status, headers, body = await app.answer("PUT", "/collections/a%20b", sent, b"{}")
    assert (status, headers["content-type"]) == (422, "application/json")
    assert '"a b"' in json.loads(body)["error"]["message"]
    status, _, body = await app.answer("PUT", "/collections/things", sent, b"{}")
    assert (status, json.loads(body)["name"]) == (201, "things")
    status, _, body = await app.answer("GET", "/collections?limit=1", {}, b"")
    assert [each["name"] for each in json.loads(body)["collections"]] == ["things"]
    await app.stop()
