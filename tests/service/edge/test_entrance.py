"""Who is let in by the head alone."""

from tercet.service.edge.cross_origin import CrossOrigin
from tercet.service.edge.entrance import CLAIM, Entrance
from tercet.service.edge.ledger import ClientLimits, Ledger
from tercet.service.http.asgi import Scope
from tercet.service.http.hosts import ANY, AllowedHosts
from tercet.service.load.admission import Admission
from tercet.service.load.clients import CLIENT
from tercet.service.load.gate import FEW, Gate
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


def test_the_gate_knows_whose_request_it_judges() -> None:
    """The prediction of the encoder's queue is that of the client, a key or an address."""
    asked: list[str] = []

    def least_wait() -> float:
        asked.append(CLIENT.get())
        return 0.0

    gate = Gate(LoopDelay(), 2.0, Admission(2.0), least_wait)
    for _ in range(FEW):
        gate.begin("/embed")
    ledger = Ledger(ClientLimits(requests=100, bodies_bytes=1 << 20))
    entrance = Entrance(KeyRing({}), AllowedHosts([ANY]), CrossOrigin(), gate, ledger)
    for address in ("10.0.0.1", "10.0.0.2"):
        assert entrance.judge({**scope_of("/embed"), "client": (address, 5)}) is None
    assert asked == ["10.0.0.1", "10.0.0.2"]
