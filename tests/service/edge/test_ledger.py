"""What one client may take beside others."""

from typing import Any

import httpx
import pytest

from tercet.service.edge import ledger as module
from tercet.service.edge.ledger import (
    ALL_REFUSALS_PER_SECOND,
    MOST_HELD_SECONDS,
    REFUSALS_PER_SECOND,
    SMALL_BYTES,
    Claim,
    ClientLimits,
    Ledger,
)
from tercet.service.exceptions import OverloadedError

MANY = 10_000


class Clock:
    """Stands in for the time that goes by."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The ledger's clock."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def taken(ledger: Ledger, client: str) -> list[Claim]:
    """As many places as a client gets."""
    claims = []
    while True:
        claim = ledger.begin(client)
        try:
            claim.take_place()
        except OverloadedError:
            return claims
        claims.append(claim)


def test_a_client_has_at_most_four_times_what_is_left() -> None:
    """Of 20 places one alone gets 17: with 16 of them 4 are free, 4 times of which is 16."""
    ledger = Ledger(ClientLimits(20, 1 << 20))
    greedy = taken(ledger, "greedy")
    assert len(greedy) == 17
    others = [taken(ledger, str(number)) for number in range(3)]
    assert [len(claims) for claims in others] == [3, 0, 0]  # all are in work
    for claim in greedy[:5]:
        claim.end()
    assert len(taken(ledger, "greedy")) == 2  # 12 others of its own are in work, 5 places are free
    assert len(taken(ledger, "polite")) == 3
    assert ledger.requests == 20


def test_a_lone_place_is_for_whoever_comes() -> None:
    ledger = Ledger(ClientLimits(1, 1 << 20))
    (claim,) = taken(ledger, "first")
    assert not taken(ledger, "second")
    with claim.resting():
        (other,) = taken(ledger, "second")
    with pytest.raises(OverloadedError, match="limit is 1"):
        claim.require_place()
    other.end()
    claim.require_place()


def test_large_bodies_of_one_leave_room_for_those_of_others() -> None:
    """Of 10 MiB, in pieces of 64 KiB, one client gets 8; a small body fits beside it, whosoever it is."""
    ledger = Ledger(ClientLimits(100, 10 << 20))
    greedy = [ledger.begin("greedy") for _ in range(10)]
    for claim in greedy[:8] * 16:
        claim.take_bytes(1 << 16)
    with pytest.raises(OverloadedError, match="this client's"):
        greedy[0].take_bytes(1 << 16)
    assert ledger.body_bytes == 8 << 20
    ledger.begin("greedy").take_bytes(SMALL_BYTES)
    polite = ledger.begin("polite")
    for _ in range(20):
        polite.take_bytes(1 << 16)
    for claim in (*greedy, polite):
        claim.end()
    assert ledger.body_bytes == SMALL_BYTES


def test_a_body_fits_where_there_is_no_other() -> None:
    ledger = Ledger(ClientLimits(100, 1 << 20))
    alone = ledger.begin("alone")
    alone.take_bytes(2 << 20)
    with pytest.raises(OverloadedError):
        ledger.begin("other").take_bytes(1)
    alone.end()
    ledger.begin("other").take_bytes(1)


def test_refusals_of_a_client_are_told_one_after_the_other(clock: Clock) -> None:
    """The first twenty are told at once; each of the others has a twentieth of a second of its own."""
    ledger = Ledger(ClientLimits(100, 1 << 20))
    waits = [ledger.refused("greedy") for _ in range(23)]
    assert waits == pytest.approx([0.0] * 20 + [0.05, 0.10, 0.15])
    clock.seconds += 0.2  # four more are due, three of which were told
    assert [ledger.refused("greedy") for _ in range(2)] == pytest.approx([0.0, 0.05])
    assert max(ledger.refused("greedy") for _ in range(1000)) == MOST_HELD_SECONDS
    clock.seconds += MOST_HELD_SECONDS
    assert ledger.refused("greedy") == pytest.approx(1 / REFUSALS_PER_SECOND)


def test_refusals_of_many_clients_are_told_one_after_the_other(clock: Clock) -> None:
    """Of 50 clients each is told twice in a second; who was not refused lately is told at once."""
    ledger = Ledger(ClientLimits(100, 1 << 20))
    clients = [str(number) for number in range(50)]
    assert [ledger.refused(client) for client in clients * 2] == [0.0] * int(ALL_REFUSALS_PER_SECOND)
    assert [ledger.refused(client) for client in clients[:3]] == pytest.approx([0.01, 0.02, 0.03])
    assert ledger.refused("polite") == 0.0
    assert ledger.refused("polite") == pytest.approx(0.05)


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
