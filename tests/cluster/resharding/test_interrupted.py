"""A move that is killed, given up or fails goes on, or leaves everything as it was."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.resharding.errors import ServersError
from tercet.cluster.resharding.live import give_up
from tercet.cluster.resharding.reshard import Resharding
from tercet.cluster.resharding.servers import MapServers, Opening
from tercet.cluster.shards.map import ShardPlace, newest_map, publish_map
from tercet.index.errors import CollectionBusyError
from tests.cluster.resharding.live_servers import NAME, Cluster, wait_for_writes, writing
from tests.cluster.resharding.test_live import moved, same, version, wait_for_version
from tests.service.polling import REST_SECONDS

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The end of a process, which cleans nothing up."""


def test_a_killed_growth_goes_on(cluster: Cluster, one: str, one_pass: None) -> None:
    """It is killed before each thing that it asks of servers, where some go on."""
    a, b = cluster.serve_map("a", "b")
    router = cluster.router("router")
    c, d = cluster.server("c"), cluster.server("d")
    with writing([router], one):
        for version, servers in ((3, [a, b, c, d]), (4, [a, c])):
            kills = 0
            for call in range(100):
                try:
                    moved(cluster, servers, dying(cluster.opened, 2 * call))
                    break
                except Killed:
                    kills += 1
            assert kills >= 6
            assert moved(cluster, servers).version == version
    wait_for_version(router, 4)
    same(router, one)


def dying(opened: Opening, at: int) -> Opening:
    """Servers at whose call of a number the process that asks ends, before it or, where odd, after it."""
    calls = iter(range(10_000))

    class Dying(MapServers):
        def _asked_some(self, *args: Any) -> dict[int, Any]:
            number = next(calls)
            if number == at // 2 and not at % 2:
                raise Killed
            found = super()._asked_some(*args)
            if number == at // 2:
                raise Killed
            return found

    def open_dying(urls: Sequence[str], collection: str) -> MapServers:
        return Dying(opened(urls, collection)._fleet, collection)

    return open_dying


@pytest.fixture
def one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before writes are held there is one pass over what was written, however long it takes."""
    monkeypatch.setattr("tercet.cluster.resharding.live.SHORT_SECONDS", math.inf)


def test_a_killed_move_goes_on(cluster: Cluster, one: str, one_pass: None) -> None:
    """It is killed before and after each thing that it asks of servers, and before and after the switch."""
    cluster.serve_map("a", "b")
    routers = [cluster.router("router"), cluster.router("slow", follow_seconds=1.0)]
    three = [cluster.server(name) for name in ("c", "d", "e")]
    kills = 0
    with writing(routers, one):
        for at in range(100):
            try:
                moved(cluster, three, dying(cluster.opened, at))
                break
            except Killed:
                kills += 1
        assert moved(cluster, three).version == 3
    assert kills == 13
    for router in routers:
        wait_for_version(router, 3)
        same(router, one)


@pytest.mark.parametrize("after", [False, True])
def test_a_move_that_is_killed_at_the_switch_goes_on(
    cluster: Cluster, one: str, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    three = [cluster.server(name) for name in ("c", "d", "e")]
    switch: Callable[..., Any] = Resharding.switch

    def killed(move: Resharding, servers: Sequence[str]) -> None:
        if after:
            switch(move, servers)
        raise Killed

    with writing([router], one):
        monkeypatch.setattr(Resharding, "switch", killed)
        with pytest.raises(Killed):
            moved(cluster, three)
        monkeypatch.setattr(Resharding, "switch", switch)
        assert moved(cluster, three).version == 3
    wait_for_version(router, 3)
    same(router, one)


def test_a_move_is_given_up(cluster: Cluster, one: str, one_pass: None) -> None:
    """Writes that were held go on at the shards that there were, and a later move has them all."""
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    three = [cluster.server(name) for name in ("c", "d", "e")]
    store = open_store(cluster.url)
    with writing([router], one) as writers:
        with pytest.raises(Killed):
            moved(cluster, three, dying(cluster.opened, 5))
        assert give_up(store, cluster.opened).version == 3
        wait_for_writes(writers)
        assert moved(cluster, three).version == 4
    wait_for_version(router, 4)
    same(router, one)


def test_a_move_that_fails_lets_writes_go_on(cluster: Cluster, one: str) -> None:
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    two = [cluster.server(name) for name in ("c", "d")]

    class Failing(MapServers):
        def keep(self, version: int) -> None:
            raise ServersError("no")

    def opened(urls: Sequence[str], collection: str) -> MapServers:
        return Failing(cluster.opened(urls, collection)._fleet, collection)

    with writing([router], one) as writers:
        with pytest.raises(ServersError, match="no"):
            moved(cluster, two, opened)
        wait_for_writes(writers)
    wait_for_version(router, 3)
    same(router, one)


def test_who_gave_up_is_not_overtaken(cluster: Cluster, one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A move that goes on after it was given up switches nothing, and fences nothing."""
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    two = [cluster.server(name) for name in ("c", "d")]
    switch: Callable[..., Any] = Resharding.switch

    def late(move: Resharding, servers: Sequence[str]) -> Any:
        give_up(open_store(cluster.url), cluster.opened)
        return switch(move, servers)

    monkeypatch.setattr(Resharding, "switch", late)
    with writing([router], one) as writers:
        with pytest.raises(CollectionBusyError, match="version 3 of the map was published meanwhile"):
            moved(cluster, two)
        wait_for_writes(writers)
        found = newest_map(open_store(cluster.url))
        assert found is not None
        former = cluster.opened([str(place.url) for place in found.shards], NAME)
        with pytest.raises(CollectionBusyError, match="was given up"):
            former.fence(3)
        wait_for_writes(writers)
    same(router, one)


def test_a_map_that_cannot_be_used_is_not_taken(
    cluster: Cluster, one: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    store = open_store(cluster.url)
    found = newest_map(store)
    assert found is not None
    places = [*found.shards[:1], ShardPlace("shards/x", "http://127.0.0.1:9")]
    publish_map(store, NAME, places, found.placement, found)
    wait_for_log(caplog, "version 2 of the map of shards stays in use: shard http://127.0.0.1:9 cannot be")
    same(router, one)
    store.create("map/000004.json", b"{}")
    wait_for_log(caplog, "map/000004.json is no map of shards")
    assert len([line for line in caplog.messages if "127.0.0.1:9 cannot be reached" in line]) == 1
    assert version(router) == 2
    same(router, one)


def wait_for_log(caplog: pytest.LogCaptureFixture, wanted: str) -> None:
    while not any(wanted in line for line in caplog.messages):
        time.sleep(REST_SECONDS)


def test_a_killed_router_takes_nothing_with_it(cluster: Cluster, one: str) -> None:
    """Its clients go to another one, and what it did not acknowledge they write again."""
    cluster.serve_map("a", "b")
    router = cluster.router("router")
    with cluster.router_process("killed") as killed, writing([router, killed], one) as writers:
        wait_for_writes(writers)
        cluster.kill(killed)
        moved(cluster, [cluster.server(name) for name in ("c", "d", "e")])
    wait_for_version(router, 3)
    same(router, one)
