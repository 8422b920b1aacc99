"""Representations of texts that were encoded before a build needs them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tercet.models.representations import Representations

KEPT_BYTES = 2**27  # more than a codebook of a small source is learned from


class RepresentationCache:
    """Texts with what they were encoded to, up to so many bytes. A text is let go of when it is taken."""

    def __init__(self, limit_bytes: int = KEPT_BYTES) -> None:
        self._left_bytes = limit_bytes
        self._by_text: dict[str, Representations] = {}

    def keep(self, texts: Sequence[str], encoded: Representations) -> None:
        """Keeps the texts that there is room for, in order."""
        for row, text in enumerate(texts):
            representations = encoded.take(np.array([row]))
            size = representations.size_bytes
            if size > self._left_bytes:
                return
            self._left_bytes -= size
            self._by_text[text] = representations

    def take(self, text: str) -> Representations | None:
        """What a text was encoded to, if it is kept."""
        return self._by_text.pop(text, None)
