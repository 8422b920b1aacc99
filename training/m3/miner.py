"""Keeps hard negatives fresh during training, and on disk, so that a resumed run has the same ones."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tercet.index.wording import reason_of
from tercet.training.data.pair_table import PairTable, RaggedRows
from tercet.training.distributed import Ranks, gather_array, wait_for_all
from tercet.training.errors import RunStateError
from tercet.training.files import replacing
from tercet.training.m3.mining import mine_negatives, random_negatives
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.objective import MinedBy, MiningSettings


class Miner:
    """The negatives of every source at any step, those given in the data among them."""

    def __init__(
        self,
        encoder: TextEncoder,
        tables: Sequence[PairTable],
        settings: MiningSettings,
        by: MinedBy,
        folder: Path,
        ranks: Ranks,
        seed: int,
    ) -> None:
        """by: what passages are ranked by; folder: the run's; seed: of random ones."""
        self._encoder = encoder
        self._tables = tables
        self._settings = settings
        self._by = by
        self._folder = folder
        self._ranks = ranks
        self._seed = seed
        self._round = -1
        self._negatives: list[RaggedRows] = []

    def negatives(self, step: int) -> list[RaggedRows]:
        """The negatives of the last round at or before the step, mined by all processes where due."""
        every = self._settings.every_steps
        current = step // every * every if every else 0
        if current != self._round:
            path = self._folder / f"negatives-{current:07d}.npz"
            # As the first process sees it, which wrote them if they are there.
            if not gather_array(np.array([path.is_file()]), self._ranks)[0]:
                self._mine(path, current)
            wait_for_all(self._ranks)
            if self._ranks.rank == 0:
                shutil.rmtree(self._parts(current), ignore_errors=True)
            self._negatives = self._read(path)
            self._round = current
        return self._negatives

    def _mine(self, path: Path, step: int) -> None:
        model = self._encoder.model
        model.eval()
        arrays: dict[str, Any] = {}
        for number, table in enumerate(self._tables):
            if mines(table):
                if self._settings.draw == "random":
                    generator = np.random.default_rng([self._seed, step, number])
                    mined = random_negatives(table, self._settings, generator)
                else:
                    parts = self._parts(step) / str(number)
                    mined = mine_negatives(self._encoder, table, self._settings, self._by, parts, self._ranks)
                arrays[f"rows_{number}"], arrays[f"offsets_{number}"] = mined.rows, mined.offsets
        model.train()
        if self._ranks.rank == 0:
            with replacing(path) as file:
                np.savez(file, **arrays)

    def _parts(self, step: int) -> Path:
        """Where what is done of the round at a step lies until all of it is."""
        return self._folder / f"mining-{step:07d}"

    def _read(self, path: Path) -> list[RaggedRows]:
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return [
                    joined(table.negatives, RaggedRows(arrays[f"rows_{n}"], arrays[f"offsets_{n}"]))
                    if mines(table)
                    else table.negatives
                    for n, table in enumerate(self._tables)
                ]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise RunStateError(
                f"{path}: cannot be read ({reason_of(error)}); remove it to mine again"
            ) from error


def joined(given: RaggedRows, mined: RaggedRows) -> RaggedRows:
    """Given and mined rows of each pair together."""
    pairs = range(len(given.offsets) - 1)
    return RaggedRows.pack([np.union1d(given.of(pair), mined.of(pair)) for pair in pairs])


def mines(table: PairTable) -> bool:
    """Whether negatives are mined for a source."""
    return table.settings.mine and len(table.training) > 0
