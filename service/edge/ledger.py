"""What each client takes of a server: its requests in work, the bytes of its bodies, and what a key may take.

A client is a key, or an address without one. Of places and of bytes it may have `SHARE` times what is left
free; small bodies take of what is free for all.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tercet.service.edge.allowance import Allowance
from tercet.service.edge.refusals import ClientRefusals, Refusals
from tercet.service.exceptions import OverloadedError
from tercet.service.load.clients import SHARE

KEPT_CLIENTS = 10_000  # more than anyone configures keys; the one used least lately is forgotten first
SMALL_BYTES = 1 << 16  # of a body: as many as come with a search


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """requests: in work at a time; bodies_bytes: of all bodies in memory; the others are of each key alike,
    None without limit.
    """

    requests: int
    bodies_bytes: int
    key_requests_per_second: float | None = None
    key_requests: int | None = None
    key_bytes_per_second: int | None = None


class Ledger:
    """What the clients of one server have of it. Use from one event loop."""

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._accounts: OrderedDict[str, Account] = OrderedDict()
        self._refusals = Refusals()
        self.requests = 0  # in work
        self.body_bytes = 0

    def begin(self, client: str, *, is_key: bool = False, requests_per_second: float | None = None) -> Claim:
        """Counts a request of a client. requests_per_second: of this key alone, None for that of all.

        Raises OverloadedError, which names the limit that it is over.
        """
        account = self._account(client)
        if is_key:
            account.require(self._limits, requests_per_second)
        return Claim(self, account, client)

    def refused(self, client: str) -> float:
        """Counts a refusal; gives the seconds for which the client is to wait for it."""
        return self._refusals.seconds(self._account(client).refusals)

    def require_place(self, account: Account) -> None:
        """Raises OverloadedError where no place is free for one more request, or none for this client."""
        free = self._limits.requests - self.requests
        if free < 1 or account.working > SHARE * free:
            raise self._no_place(account)

    def require_kept_place(self, account: Account) -> None:
        """Raises OverloadedError where more requests are in work than there are places."""
        if self.requests > self._limits.requests:
            raise self._no_place(account)

    def require_bytes(self, account: Account, more_bytes: int, own_bytes: int) -> None:
        """Raises OverloadedError where more of a body does not fit; one always fits where there is no other.

        own_bytes: what the same body has already.
        """
        limit = self._limits.bodies_bytes
        free = limit - self.body_bytes - more_bytes
        is_small = own_bytes + more_bytes <= SMALL_BYTES
        if self.body_bytes <= own_bytes or (
            free >= 0 and (is_small or account.body_bytes + more_bytes <= SHARE * free)
        ):
            return
        raise OverloadedError(
            f"bodies of {self.body_bytes} bytes are here, {account.body_bytes} of them this client's; "
            f"{more_bytes} more would exceed {limit} (setting max_bodies_bytes), or {SHARE} times what is "
            "left, which one client may have: try again in a second",
            1,
            "bodies",
        )

    def _no_place(self, account: Account) -> OverloadedError:
        return OverloadedError(
            f"{self.requests} requests are in work, {account.working} of them this client's; the limit is "
            f"{self._limits.requests} (setting max_concurrent_requests), and for one client {SHARE} times "
            "what is left: try again in a second",
            1,
            "requests",
        )

    def _account(self, client: str) -> Account:
        account = self._accounts.get(client)
        if account is None:
            account = self._accounts[client] = Account(self._limits)
            if len(self._accounts) > KEPT_CLIENTS:
                self._accounts.popitem(last=False)
        self._accounts.move_to_end(client)
        return account


class Claim:
    """What one request has, until it is answered."""

    __slots__ = ("_account", "_body_bytes", "_has_place", "_ledger", "client")

    def __init__(self, ledger: Ledger, account: Account, client: str) -> None:
        self.client = client
        self._ledger = ledger
        self._account = account
        self._body_bytes = 0
        self._has_place = False
        account.requests += 1

    def take_place(self) -> None:
        """Takes a place among the requests in work. Raises OverloadedError."""
        self._ledger.require_place(self._account)
        self._has_place = True
        self._work(1)

    def require_place(self) -> None:
        """Raises OverloadedError where others came while the body of this request arrived."""
        if self._has_place:
            self._ledger.require_kept_place(self._account)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Meanwhile the server waits for the client, which sends the body or takes the answer.

        Slow clients leave their places to others.
        """
        self._work(-1)
        try:
            yield
        finally:
            self._work(1)

    def refused(self) -> float:
        """Counts a refusal after the request was let in, as `Ledger.refused` does."""
        return self._ledger.refused(self.client)

    def take_bytes(self, more_bytes: int) -> None:
        """Takes memory for the body. Raises OverloadedError."""
        self._ledger.require_bytes(self._account, more_bytes, self._body_bytes)
        self._ledger.body_bytes += more_bytes
        self._account.body_bytes += more_bytes
        self._body_bytes += more_bytes

    def count(self, body_bytes: int) -> None:
        """Counts the body, against the requests of the same key that come after this one."""
        self._account.bytes_per_second.take(body_bytes)

    def end(self) -> None:
        """The request is answered: gives all of it back."""
        self._work(-1)
        self._has_place = False
        self._ledger.body_bytes -= self._body_bytes
        self._account.body_bytes -= self._body_bytes
        self._account.requests -= 1
        self._body_bytes = 0

    def _work(self, more: int) -> None:
        if self._has_place:
            self._ledger.requests += more
            self._account.working += more


class Account:
    """Of one client. requests: that are not answered; working: those of them that are in work."""

    __slots__ = (
        "_requests_per_second",
        "body_bytes",
        "bytes_per_second",
        "refusals",
        "requests",
        "working",
    )

    def __init__(self, limits: ClientLimits) -> None:
        self.requests = self.working = self.body_bytes = 0
        self.refusals = ClientRefusals()
        self.bytes_per_second = Allowance(limits.key_bytes_per_second)
        self._requests_per_second = Allowance(limits.key_requests_per_second)

    def require(self, limits: ClientLimits, requests_per_second: float | None) -> None:
        """Raises OverloadedError where another request of a key is over a limit."""
        named = "setting key_requests_per_second" if requests_per_second is None else "of the keys file"
        most = limits.key_requests_per_second if requests_per_second is None else requests_per_second
        if self._requests_per_second.per_second != most:  # the file of keys has changed
            self._requests_per_second = Allowance(most)
        if limits.key_requests is not None and self.requests >= limits.key_requests:
            problem = f"this key has {self.requests} requests in work"
            raise _over(problem, "setting max_key_requests", limits.key_requests, 1)
        for allowance, what, source in (
            (self._requests_per_second, "requests", named),
            (self.bytes_per_second, "bytes of bodies", "setting key_bytes_per_second"),
        ):
            if (seconds := allowance.wait_seconds()) > 0:
                problem = f"this key has used up its {what} of this second"
                raise _over(problem, source, allowance.per_second, seconds)
        self._requests_per_second.take(1)


def _over(problem: str, source: str, limit: float | None, seconds: float) -> OverloadedError:
    wait = math.ceil(seconds)
    return OverloadedError(
        f"{problem}; the limit is {limit:g} ({source}): try again in {wait} s", seconds, "key"
    )
