"""Stored rows of random documents for live collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.segments.checks import check_batch
from tercet.index.segments.rows import DocumentRows
from tercet.index.windows.settings import WindowSettings
from tercet.index.windows.store import DocumentWindows

MakeRows = Callable[[CollectionSettings, list[str], int], DocumentRows]


@pytest.fixture(scope="session")
def live_settings(random_texts: Any, make_settings: Any) -> Callable[..., CollectionSettings]:
    """Settings of a collection with a year, and windows where asked."""

    def make(*, windows: bool = False, **changes: Any) -> CollectionSettings:
        settings: CollectionSettings = make_settings(
            random_texts(1, 0),
            "demo",
            fields={"year": "integer"},
            window=WindowSettings(16, 4) if windows else None,
            **changes,
        )
        return settings

    return make


@pytest.fixture(scope="session")
def make_rows(random_texts: Any) -> MakeRows:
    """Random documents of these ids: other seeds give other contents."""

    def make(settings: CollectionSettings, ids: list[str], seed: int) -> DocumentRows:
        documents = [
            Document(id, "word" * 2 + f" {seed} {id}", None, {"year": 2000 + (seed + place) % 5})
            for place, id in enumerate(ids)
        ]
        if settings.window is None:
            return check_batch(documents, random_texts(len(ids), seed), settings)
        counts = 1 + (np.arange(len(ids)) + seed) % 3
        offsets = np.append(0, np.cumsum(counts))
        spans = np.zeros((offsets[-1], 2), np.int64)
        encoded = random_texts(int(offsets[-1]), seed)
        return check_batch(documents, encoded, settings, DocumentWindows(offsets, spans))

    return make
