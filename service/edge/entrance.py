"""Who may come in, judged by the head alone: at the wire, or by the edge where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tercet.service.edge.cross_origin import CrossOrigin, is_preflight
from tercet.service.edge.heads import refusal_of_head
from tercet.service.edge.joined_paths import joined
from tercet.service.edge.ledger import Claim, Ledger
from tercet.service.errors import Failure, failure_of
from tercet.service.exceptions import OverloadedError, RefusalReason, ServiceError, UnauthenticatedError
from tercet.service.http.asgi import Scope, header
from tercet.service.http.checksums import require_sound_head
from tercet.service.http.hosts import AllowedHosts
from tercet.service.load.clients import CLIENT, PART, PART_HEADER
from tercet.service.load.gate import Gate, Passage
from tercet.service.requests.keys import OPEN_FILES, KeyRing, is_open

# Small answers that need no encoder; a search node asks its workers for the last two before all else.
ALWAYS_SERVED = {"/health", "/ready", "/tei/health", "/metrics", "/info", "/tokenizer"}
CLAIM = "claim"  # where a request's scope has it, among its `state`


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not let in.

    reason: of an answer 429; seconds: for which its client waits for the answer.
    """

    failure: Failure
    reason: RefusalReason | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Entrance:
    """One for all requests. In this order a head is judged: its form and host, its key, how late the server
    is, what the key may take, and whether a place is free.

    root_path: before paths of requests where a proxy leaves it there.
    """

    keys: KeyRing
    hosts: AllowedHosts
    cross_origin: CrossOrigin
    gate: Gate
    ledger: Ledger
    root_path: str = ""

    def judge(self, scope: Scope, waited_seconds: float = 0.0) -> Refusal | None:
        """Lets a request in, with its claim in its state and what its key may do, or refuses it.

        From then on its client is the one at hand, also for the task that answers it.

        waited_seconds: since its bytes could be read.
        """
        scope["path"] = path = self._below_root(joined(scope["path"]))
        state: dict[str, Any] = scope["state"]
        address = scope.get("client")
        client = address[0] if address else ""
        failure = refusal_of_head(scope, self.hosts, self.cross_origin)
        if failure is not None:
            return Refusal(failure, seconds=self.ledger.refused(client))
        if is_preflight(scope) and self.cross_origin.preflight(scope) is not None:
            return None
        try:
            require_sound_head(scope)
            access = None if is_open(path) else self.keys.access(header(scope, b"authorization"))
            if access is not None:
                state["access"] = access
                client = access.key or client
            CLIENT.set(client)
            PART.set(header(scope, PART_HEADER.lower().encode()))
            # What browsers do not ask for again is served.
            if path not in ALWAYS_SERVED and not path.startswith(OPEN_FILES):
                timeout = header(scope, b"x-request-timeout")
                self.gate.require(path, waited_seconds, timeout, client)
            per_second = None if access is None else access.requests_per_second
            is_key = access is not None and access.key is not None
            claim = self.ledger.begin(client, is_key=is_key, requests_per_second=per_second)
            if path not in ALWAYS_SERVED:
                self._take_place(claim)
            state[CLAIM] = claim
        except ServiceError as error:
            reason = error.reason if isinstance(error, OverloadedError) else None
            counts = reason is not None or isinstance(error, UnauthenticatedError)
            return Refusal(failure_of(error), reason, self.ledger.refused(client) if counts else 0.0)
        return None

    def passage(self, scope: Scope) -> Passage:
        """The way through the gate of a request that was let in."""
        claim: Claim | None = scope["state"].get(CLAIM)
        return Passage(self.gate, scope["path"], "" if claim is None else claim.client)

    def _below_root(self, path: str) -> str:
        """A path without the prefix of the server, as far as it has one."""
        below = path.removeprefix(self.root_path)
        return path if below[:1] not in ("", "/") else below or "/"

    @staticmethod
    def _take_place(claim: Claim) -> None:
        try:
            claim.take_place()
        except OverloadedError:
            claim.end()
            raise
