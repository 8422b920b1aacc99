"""What one client may take beside others."""

import pytest

from tercet.service.edge.ledger import SMALL_BYTES, Claim, ClientLimits, Ledger
from tercet.service.exceptions import OverloadedError


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
