"""The calibration that comes with a checkpoint, `confidence.json` in its folder."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tercet.index.catalog.calibration import Calibration
from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.files.directory import write_json_atomically
from tercet.models.checkpoint import SHIPPED, SHIPPED_FOLDER
from tercet.models.encoder import EncoderInfo
from tercet.models.representations import LexicalKind
from tercet.service.collections.readable import ReadableSnapshot, SearchTarget
from tercet.service.load.pools import Pool

CALIBRATION_FILE = "confidence.json"
REMEDY = "restore it, or remove it, and hits come without confidence"
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class CheckpointCalibration:
    """A calibration, and the encoder that it holds for: no other has its scores.

    lexical: of the collections that it was fitted on; sets: their names.
    """

    fingerprint: str
    lexical: LexicalKind
    calibration: Calibration
    sets: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """Writes `confidence.json` into a checkpoint's folder."""
        record = {
            "format_version": FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "lexical": self.lexical,
            "calibration": self.calibration.to_json(),
            "sets": self.sets,
        }
        write_json_atomically(folder / CALIBRATION_FILE, record)

    @staticmethod
    def read(folder: Path) -> CheckpointCalibration:
        """Reads `confidence.json`. Raises FileNotFoundError, or DamagedIndexError naming file and remedy."""
        record = Record.read(folder / CALIBRATION_FILE, REMEDY)
        record.require_version()
        record.require_keys(("format_version", *CheckpointCalibration.__slots__))
        return CheckpointCalibration(
            record.text("fingerprint", _FINGERPRINT),
            record.one_of("lexical", get_args(LexicalKind)),
            Calibration.of(record.part("calibration")),
            tuple(map(str, record.values["sets"])),
        )


class Calibrations:
    """The calibrations of checkpoints and collections. Safe to use in relays."""

    def __init__(self, pool: Pool) -> None:
        """pool: where files are read, each once."""
        self._pool = pool
        self._read: dict[str, CheckpointCalibration | None] = {}

    async def of(self, target: SearchTarget[ReadableSnapshot], info: EncoderInfo) -> Calibration | None:
        """What is stored with a collection, or else came with its checkpoint; None where there is neither.

        Raises DamagedIndexError.
        """
        settings = target.snapshot.settings
        if target.defaults is not None and target.defaults.confidence is not None:
            return target.defaults.confidence
        fingerprint = settings.fingerprint
        if fingerprint not in self._read:
            self._read[fingerprint] = await self._pool.run(calibration_of_checkpoint, info, fingerprint)
        known = self._read[fingerprint]
        return known.calibration if known is not None and known.lexical == settings.lexical else None


def calibration_of_checkpoint(info: EncoderInfo, fingerprint: str) -> CheckpointCalibration | None:
    """What lies in the folder of an encoder's checkpoint, where it is for this fingerprint.

    Raises DamagedIndexError.
    """
    folder = SHIPPED_FOLDER / info.name if info.name in SHIPPED else Path(info.checkpoint or "")
    if not folder.is_absolute():  # of the hub, or of another machine
        return None
    try:
        known = CheckpointCalibration.read(folder)
    except FileNotFoundError:
        return None
    if known.fingerprint == fingerprint:
        return known
    log.warning(
        "%s is for fingerprint %s, and the encoder of a collection has %s: its hits come without confidence",
        folder / CALIBRATION_FILE,
        known.fingerprint,
        fingerprint,
    )
    return None
