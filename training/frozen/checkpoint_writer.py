"""Writes a fitted checkpoint: the base's body and tokenizer, the new heads, settings and a model card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from models.checkpoint import CONFIG_FILE, SETTINGS_FILE
from models.head_weights import HeadWeights, write_heads
from models.tokenizer import TOKENIZER_FILE
from training.base_checkpoint import WEIGHTS
from training.frozen.config import FitSettings
from training.frozen.fit_report import FitReport
from training.frozen.model_card import model_card

CARD_FILE = "README.md"
COPIED = (CONFIG_FILE, TOKENIZER_FILE, "tokenizer_config.json", WEIGHTS)


def write_checkpoint(
    folder: Path, base: Path, heads: HeadWeights, settings: FitSettings, reports: Sequence[FitReport]
) -> None:
    """Writes a folder that the torch engine loads and `tercet export` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)
    write_heads(folder, heads)
    encoding = json.dumps(asdict(settings.encoder), indent=2)
    (folder / SETTINGS_FILE).write_text(encoding + "\n", encoding="utf-8")
    (folder / CARD_FILE).write_text(model_card(settings, reports), encoding="utf-8")
