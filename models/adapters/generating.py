"""The bottlenecks that a hypernetwork makes of a language and a task, as an adapter like any other.

Source: a linear layer over a vector generates the parameters (Platanios et al. 2018, arXiv 1808.08493), those
of bottlenecks for a language (Üstün et al. 2020, arXiv 2004.14327), or for a language and a task (Hyper-X,
Üstün et al. 2022, arXiv 2205.12148, there not linear).
"""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np

from tercet.models.adapters.compound_settings import HypernetworkSettings
from tercet.models.adapters.files import RECORD_FILE
from tercet.models.adapters.kinds import settings_from_disk
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.settings import PAIR_MARK
from tercet.models.checkpoint import read_json
from tercet.models.errors import CheckpointError


def generated(adapter: Adapter, language: str, task: str) -> Adapter:
    """The adapter of kind bottleneck of one pair. Raises CheckpointError for names that there are not."""
    settings = adapter.settings
    if not isinstance(settings, HypernetworkSettings):
        raise CheckpointError(f"it is of kind {adapter.kind}; adapters are made by a hypernetwork alone")
    vectors = []
    for key, known, name in (("languages", settings.languages, language), ("tasks", settings.tasks, task)):
        if name not in known:
            raise CheckpointError(f"it has no {name!r:.80} among its {key}, {', '.join(known)}")
        vectors.append(adapter.arrays[key][known.index(name)])
    vector = np.concatenate(vectors).astype(np.float64)
    arrays = {}
    start, before = 0, ""
    for name, shape in settings.bottleneck.shapes(adapter.base.body).items():
        slot = ".".join(name.split(".")[:3])
        start = start if slot == before else 0
        rows = adapter.arrays[f"{slot}.generator"][start : start + math.prod(shape)]
        arrays[name] = (rows @ vector).reshape(shape).astype(np.float32)
        start, before = start + len(rows), slot
    rest = (adapter.heads, adapter.below, adapter.description)
    return Adapter(settings.bottleneck, adapter.base, arrays, *rest, language=language, domain=task)


def generated_names(folder: Path) -> list[str]:
    """The names of all that a folder's hypernetwork makes, as `world+ko+law`; none of another adapter.

    A damaged one has none here, and is told of as an adapter that is damaged.
    """
    with suppress(CheckpointError):
        record = read_json(folder / RECORD_FILE)
        if record.get("kind") == HypernetworkSettings.kind:
            settings = settings_from_disk(record["kind"], record.get("settings", {}))
            assert isinstance(settings, HypernetworkSettings)  # noqa: S101 - by its kind
            return [
                PAIR_MARK.join((folder.name, *pair)) for pair in product(settings.languages, settings.tasks)
            ]
    return []
