"""When clients are told that they were refused."""

from typing import Any

import httpx
import pytest

from tercet.service.edge import allowance
from tercet.service.edge import refusals as module
from tercet.service.edge.refusals import (
    ALL_REFUSALS_PER_SECOND,
    MOST_HELD,
    MOST_HELD_SECONDS,
    REFUSALS_PER_SECOND,
    ClientRefusals,
    Refusals,
)

MANY = 10_000


class Clock:
    """Stands in for the time that goes by."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """That of refusals."""
    clock = Clock()
    for place in (module, allowance):
        monkeypatch.setattr(place, "time", clock)
    return clock


def test_refusals_of_a_client_are_told_one_after_the_other(clock: Clock) -> None:
    """The first twenty are told at once; each of the others has a twentieth of a second of its own."""
    refusals, greedy = Refusals(), ClientRefusals()
    waits = [refusals.seconds(greedy) for _ in range(23)]
    assert waits == pytest.approx([0.0] * 20 + [0.05, 0.10, 0.15])
    clock.seconds += 0.2  # four more are due, three of which were told
    assert [refusals.seconds(greedy) for _ in range(2)] == pytest.approx([0.0, 0.05])
    assert max(refusals.seconds(greedy) for _ in range(500)) == MOST_HELD_SECONDS
    clock.seconds += MOST_HELD_SECONDS
    assert refusals.seconds(greedy) == pytest.approx(1 / REFUSALS_PER_SECOND)


def test_refusals_of_many_clients_are_told_one_after_the_other(clock: Clock) -> None:
    """Of 25 clients each is told twice in a second; who was not refused lately is told at once."""
    refusals, clients, polite = Refusals(), [ClientRefusals() for _ in range(25)], ClientRefusals()
    assert [refusals.seconds(client) for client in clients * 2] == [0.0] * int(ALL_REFUSALS_PER_SECOND)
    assert [refusals.seconds(client) for client in clients[:3]] == pytest.approx([0.02, 0.04, 0.06])
    assert refusals.seconds(polite) == 0.0
    assert refusals.seconds(polite) == pytest.approx(0.10)


def test_no_more_than_some_are_held(clock: Clock) -> None:
    """Those of clients that do not wait for answers would else take a connection each."""
    refusals, greedy = Refusals(), ClientRefusals()
    waits = [refusals.seconds(greedy) for _ in range(MANY)]
    assert sum(seconds > 0 for seconds in waits) == MOST_HELD
    assert waits[-1] == 0.0
    clock.seconds += MOST_HELD_SECONDS
    assert refusals.seconds(greedy) > 0


@pytest.mark.slow
def test_who_is_refused_again_and_again_waits_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch, make_server: Any, connect: Any
) -> None:
    monkeypatch.setattr(module, "REFUSALS_PER_SECOND", 0.001)
    monkeypatch.setattr(module, "MOST_HELD_SECONDS", 3600.0)
    with make_server(api_keys="key") as url:
        stranger = connect(url)
        stranger.socket.settimeout(5.0)
        assert answers_to(stranger) == 1
        with httpx.Client(base_url=url, headers={"Authorization": "Bearer key"}) as polite:
            for _ in range(5):
                assert polite.get("/collections").status_code == 200


def answers_to(stranger: Any) -> int:
    """How many refusals a client gets until one is held."""
    for count in range(MANY):
        stranger.send("GET /collections HTTP/1.1")
        try:
            assert stranger.answer().status == 401
        except TimeoutError:
            return count
    return MANY


async def test_a_late_refusal_counts_too(monkeypatch: pytest.MonkeyPatch, make_client: Any) -> None:
    """A key's first requests in a second are refused at once; where there is no wire, as at one."""
    monkeypatch.setattr(module, "MOST_HELD_SECONDS", 0.0)
    async with make_client(api_keys="key", key_requests_per_second=0.001) as client:
        headers = {"Authorization": "Bearer key"}
        statuses = [
            (await client.post("/embed", json={"inputs": "tea"}, headers=headers)).status_code
            for _ in range(30)
        ]
    assert statuses == [200] + [429] * 29
