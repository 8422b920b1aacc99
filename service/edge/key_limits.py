"""What one key may take of a server: requests a second, requests at once, bytes of bodies a second."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from dataclasses import dataclass

from tercet.service.exceptions import OverloadedError

KEPT_KEYS = 10_000  # more than anyone configures; the one used least lately is forgotten first


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Of each key alike; None: without limit."""

    requests_per_second: float | None = None
    requests: int | None = None
    bytes_per_second: int | None = None


class KeyBook:
    """What the keys of one server have used. Use from one event loop."""

    def __init__(self, limits: KeyLimits) -> None:
        self._limits = limits
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    def begin(self, key: str, requests_per_second: float | None = None) -> KeyUse:
        """Counts a request of a key. requests_per_second: its own limit, None for that of all.

        Raises OverloadedError, which names the limit that it is over.
        """
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = _Account(self._limits)
            if len(self._accounts) > KEPT_KEYS:
                self._accounts.popitem(last=False)
        self._accounts.move_to_end(key)
        account.require(requests_per_second)
        return KeyUse(account)


class KeyUse:
    """One request of a key."""

    __slots__ = ("_account",)

    def __init__(self, account: _Account) -> None:
        self._account = account
        account.requests += 1

    def count(self, body_bytes: int) -> None:
        """Counts its body, against the requests that come after it."""
        self._account.bytes.take(body_bytes)

    def end(self) -> None:
        """It is answered."""
        self._account.requests -= 1


class _Account:
    """Of one key."""

    def __init__(self, limits: KeyLimits) -> None:
        self._limits = limits
        self.requests = 0
        self._begun = _Allowance(limits.requests_per_second)
        self.bytes = _Allowance(limits.bytes_per_second)

    def require(self, requests_per_second: float | None) -> None:
        """Raises OverloadedError where another request is over a limit."""
        limits = self._limits
        named = "setting key_requests_per_second" if requests_per_second is None else "of the keys file"
        most = limits.requests_per_second if requests_per_second is None else requests_per_second
        if self._begun.per_second != most:  # the file of keys has changed
            self._begun = _Allowance(most)
        if limits.requests is not None and self.requests >= limits.requests:
            raise _over(
                f"this key has {self.requests} requests in work",
                "setting max_key_requests",
                limits.requests,
                1,
            )
        for allowance, what, source in (
            (self._begun, "requests", named),
            (self.bytes, "bytes of bodies", "setting key_bytes_per_second"),
        ):
            if (seconds := allowance.wait_seconds()) > 0:
                problem = f"this key has used up its {what} of this second"
                raise _over(problem, source, allowance.per_second, seconds)
        self._begun.take(1)


class _Allowance:
    """So much a second, of which at most that of one second is saved up.

    What is taken may once exceed what is left, and is paid back before more is given.
    """

    def __init__(self, per_second: float | None) -> None:
        self.per_second = per_second
        self._left = math.inf if per_second is None else max(1.0, per_second)
        self._looked = time.monotonic()

    def wait_seconds(self) -> float:
        """How long until something is left."""
        if self.per_second is None:
            return 0.0
        now = time.monotonic()
        saved = self._left + (now - self._looked) * self.per_second
        self._left, self._looked = min(max(1.0, self.per_second), saved), now
        return max(0.0, (1.0 - self._left) / self.per_second)

    def take(self, amount: float) -> None:
        """Takes it."""
        self._left -= amount


def _over(problem: str, source: str, limit: float | None, seconds: float) -> OverloadedError:
    wait = math.ceil(seconds)
    return OverloadedError(
        f"{problem}; the limit is {limit:g} ({source}): try again in {wait} s", seconds, "key"
    )
