"""Who is let in by the head alone."""

from tercet.service.edge.cross_origin import CrossOrigin
from tercet.service.edge.entrance import CLAIM, Entrance
from tercet.service.edge.ledger import ClientLimits, Ledger
from tercet.service.http.asgi import Scope
from tercet.service.http.hosts import ANY, AllowedHosts
from tercet.service.load.gate import Gate
from tercet.service.load.loop import LoopDelay
from tercet.service.requests.keys import KeyRing


def scope_of(path: str) -> Scope:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("10.0.0.1", 5),
        "state": {},
    }


def test_a_request_that_is_refused_has_nothing_to_give_back() -> None:
    ledger = Ledger(ClientLimits(requests=1, bodies_bytes=1 << 20))
    entrance = Entrance(KeyRing({}), AllowedHosts([ANY]), CrossOrigin(), Gate(LoopDelay(), 2.0), ledger)
    first, second, health = map(scope_of, ("/collections", "/collections", "/health"))
    assert entrance.judge(first) is None
    refusal = entrance.judge(second)
    assert refusal is not None
    assert (refusal.failure.status, refusal.reason, CLAIM in second["state"]) == (429, "requests", False)
    assert entrance.judge(health) is None
    for scope in (first, health):
        assert scope["state"][CLAIM].client == "10.0.0.1"
        scope["state"][CLAIM].end()
    assert (ledger.requests, entrance.judge(second)) == (0, None)
