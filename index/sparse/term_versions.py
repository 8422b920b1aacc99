"""The counts of terms at each moment of a collection that is written: counted once, and then kept up."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tercet.index.sparse.term_totals import TermChange, TermCounts, TermSums, TermTotals
from tercet.models.representations import Int32, Int64

PENDING_CHANGES = 256  # that no search has asked for; more of them, or of their weights, are counted at once
PENDING_WEIGHTS = 1_000_000
KEPT_CHANGES = 64  # for searches of snapshots that are so many writes old

Count = Callable[[], TermTotals]


class TermVersion:
    """One moment of a collection, between two writes. All versions share the counts of one of them."""

    def __init__(self) -> None:
        self._shared = _Shared()
        self._former: TermVersion | None = None
        self._change: TermChange | None = None  # which led here from the former
        self._pending = 0, 0  # changes, and their weights, that led here from what was counted

    def after(self, change: Callable[[], TermChange]) -> TermVersion:
        """That after a write. Its change is only looked at where something was counted."""
        later = TermVersion()
        if self._shared.totals is not None:
            changes, weights = self._pending
            later._shared, later._former, later._change = self._shared, self, change()
            later._pending = changes + 1, weights + later._change.weights
            if later._pending[0] > PENDING_CHANGES or later._pending[1] > PENDING_WEIGHTS:
                later.read(np.empty(0, np.int32))
        return later

    def read(self, terms: Int32, count: Count | None = None) -> tuple[Int64, TermSums] | None:
        """n of some terms, and the sums, at this version; None where they are not known, or not any more.

        count: counts at this version, where nobody has counted yet.
        """
        with self._shared.lock:
            return self._shared.read(self, terms, count)

    def counts(self, count: Count) -> TermCounts | None:
        """n and M of all terms at this version, copied; None where they are not known any more."""
        with self._shared.lock:
            return self._shared.counts(self, count)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A change that is in the totals. version, sums: of before it; terms: int32[X], ascending."""

    version: TermVersion
    sums: TermSums
    terms: Int32
    frequencies: Int64


class _Shared:
    """The totals at one version, which go on to a later one when they are asked for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.totals: TermTotals | None = None
        self._version: TermVersion | None = None
        self._counted: deque[_Counted] = deque(maxlen=KEPT_CHANGES)

    def read(self, version: TermVersion, terms: Int32, count: Count | None) -> tuple[Int64, TermSums] | None:
        """Frequencies of terms, and the sums, at a version: `TermVersion.read` under the lock."""
        if self.totals is None:
            if count is None:
                return None
            self.totals, self._version = count(), version
        if self._reach(self.totals, version):
            return self.totals.frequencies(terms), self.totals.sums
        return self._before(self.totals.frequencies(terms), version, terms)

    def counts(self, version: TermVersion, count: Count) -> TermCounts | None:
        """The counts of all terms at a version: `TermVersion.counts` under the lock."""
        if self.totals is None:
            self.totals, self._version = count(), version
        return self.totals.counts() if self._reach(self.totals, version) else None

    def _reach(self, totals: TermTotals, version: TermVersion) -> bool:
        """Counts the writes that lead to a version from that of the totals; whether there is such a way."""
        path: list[tuple[TermVersion, TermVersion, TermChange]] = []
        while version is not self._version:
            if version._former is None or version._change is None:
                return False
            path.append((version._former, version, version._change))
            version = version._former
        for former, later, change in reversed(path):
            terms, frequencies, masses = change.counted()
            self._counted.append(_Counted(former, totals.sums, terms, frequencies))
            totals.apply(terms, frequencies, masses)
            self._version = later
            later._former, later._change, later._pending = None, None, (0, 0)
        return True

    def _before(
        self, frequencies: Int64, version: TermVersion, terms: Int32
    ) -> tuple[Int64, TermSums] | None:
        """Frequencies and sums at a version of before the last writes, from the current ones."""
        for counted in reversed(self._counted):
            if len(counted.terms):
                indices = np.minimum(np.searchsorted(counted.terms, terms), len(counted.terms) - 1)
                frequencies -= np.where(counted.terms[indices] == terms, counted.frequencies[indices], 0)
            if counted.version is version:
                return frequencies, counted.sums
        return None
