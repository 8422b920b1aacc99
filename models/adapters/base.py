"""The base that an adapter belongs to, as the checkpoint's own files say it."""

from __future__ import annotations

from pathlib import Path

from tercet.models.adapters.blocks import BodyShape
from tercet.models.adapters.record import AdapterBase
from tercet.models.checkpoint import CONFIG_FILE, checkpoint_name, read_json, read_settings
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import fingerprint, heads_digest
from tercet.models.graphs.record import body_digest
from tercet.models.heads import load_heads
from tercet.models.tokenizer import Tokenizer


def adapter_base(checkpoint: Path, name: str | None = None) -> AdapterBase:
    """What an adapter records of the checkpoint that it is trained on, with weights for the torch engine.

    name: that to record, by default the folder's. Raises CheckpointError where it lacks a head.
    """
    shape = BodyShape.of_config(read_json(checkpoint / CONFIG_FILE))
    settings = read_settings(checkpoint)
    if settings.late_interaction is not None:
        raise CheckpointError(
            f"{checkpoint} is an encoder of ColBERT's kind, for which adapters are not trained here"
        )
    if settings.tasks is not None:
        raise CheckpointError(f"{checkpoint} has adapters by task, beside which none are trained here")
    heads = load_heads(checkpoint, shape.hidden_size, settings).weights()
    heads.both()
    parts = (
        body_digest(checkpoint),
        heads_digest(heads.arrays()),
        Tokenizer.load(checkpoint, settings).digest,
    )
    return AdapterBase(name or checkpoint_name(str(checkpoint)), fingerprint(*parts, settings), shape)
