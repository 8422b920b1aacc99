"""Remembers every id of a build in 16 bytes each, to find duplicates as they arrive."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tercet.index.errors import DuplicateDocumentError

DIGEST_BYTES = 16
NAMED_AT_MOST = 10
RECENT_LIMIT = 16_384

Digests = npt.NDArray[np.bytes_]


class IdRegister:
    """Digests of all ids: recent ones in a set, older ones in sorted arrays that double in size.

    With 128 bits, two different ids share a digest with a probability below 1e-21 for 100 million ids.
    """

    def __init__(self) -> None:
        self._recent: set[bytes] = set()
        self._sorted: list[Digests] = []

    def __len__(self) -> int:
        return len(self._recent) + sum(len(digests) for digests in self._sorted)

    def add(self, ids: Sequence[bytes]) -> None:
        """Adds the ids of one batch. Raises DuplicateDocumentError, naming ids, and adds none of them."""
        digests = [hashlib.blake2b(identifier, digest_size=DIGEST_BYTES).digest() for identifier in ids]
        counts = Counter(digests)
        known = self._known(digests)
        repeated = {
            identifier
            for identifier, digest, old in zip(ids, digests, known, strict=True)
            if old or counts[digest] > 1
        }
        if repeated:
            names = [repr(identifier.decode()) for identifier in sorted(repeated)]
            more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
            raise DuplicateDocumentError(
                f"document ids occur more than once: {', '.join(names[:NAMED_AT_MOST])}{more}; "
                "give each document its own"
            )
        self._recent.update(digests)
        if len(self._recent) >= RECENT_LIMIT:
            self._settle()

    def _known(self, digests: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        wanted = np.array(digests, f"S{DIGEST_BYTES}")
        known = np.array([digest in self._recent for digest in digests], np.bool_)
        for older in self._sorted:
            indices = np.minimum(np.searchsorted(older, wanted), len(older) - 1)
            known |= older[indices] == wanted
        return known

    def _settle(self) -> None:
        merged = np.array(list(self._recent), f"S{DIGEST_BYTES}")
        self._recent.clear()
        while self._sorted and len(self._sorted[-1]) <= len(merged):
            merged = np.concatenate([self._sorted.pop(), merged])
        merged.sort()
        self._sorted.append(merged)
