"""How whoever encodes opens the encoder: by the settings of who asked for the build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tercet.ingest.document_encoders import DocumentEncoder, LocalDocuments
from tercet.models.variants import Variant
from tercet.service.encoding.service import local_encoder
from tercet.service.settings.reading import load_settings
from tercet.service.settings.settings import ROLES, Settings


def encoder_opener(
    settings: Settings, checkpoint: str | None = None, threads: int | None = None
) -> Callable[[], DocumentEncoder]:
    """Opens the encoder of these settings, or of another checkpoint, in any process where the same paths
    lead to the same files. threads: where the settings say none.
    """
    values = {
        name: getattr(settings, name)
        for name, role in ROLES.items()
        if role.encodes and "worker" in role.servers
    }
    values["adapters"] = settings.adapters_folder.absolute()
    values["checkpoint"] = _found(settings.checkpoint)
    if settings.threads is None:
        values["threads"] = threads
    given = {name: value for name, value in values.items() if value is not None}
    return partial(_opened, given, None if checkpoint is None else _found(checkpoint))


def _opened(values: Mapping[str, Any], checkpoint: str | None) -> DocumentEncoder:
    return LocalDocuments(local_encoder(load_settings(values), checkpoint))


def _found(checkpoint: str) -> str:
    """A checkpoint's name, or its path from wherever a process is."""
    variant = Variant.of(checkpoint)
    path = Path(variant.checkpoint).expanduser()
    return replace(variant, checkpoint=str(path.absolute())).name if path.is_dir() else checkpoint
