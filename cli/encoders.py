"""The encoder that a command opens for a collection: the one that it was built with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tercet.index.catalog.settings import CollectionSettings
    from tercet.models.encoder import Encoder
    from tercet.models.tokenizer import Tokenizer
    from tercet.service.settings.settings import Settings


def encoder_of(settings: Settings, collection: CollectionSettings) -> Encoder:
    """The encoder of a collection, without its adapter; the collection says where it is.

    Where a flag --checkpoint or --heads is given, that one is opened. Whether it is the collection's is still
    to be checked. Raises CheckpointError that says what to give, and other ModelError.
    """
    from tercet.ingest.encoder_match import checkpoint_of
    from tercet.models.errors import CheckpointError
    from tercet.service.encoding.service import local_encoder

    named = checkpoint_of(collection)
    if settings.flags & {"checkpoint", "heads"} or named is None:
        return local_encoder(settings)
    try:
        return local_encoder(settings, named)
    except CheckpointError as error:
        if "checkpoint" in settings.model_fields_set:  # it may be given from where it is now
            given = local_encoder(settings)
            if _is_of(collection, given):
                return given
        raise CheckpointError(
            f"collection {collection.name!r} was built with encoder {collection.encoder!r}, which cannot be "
            f"opened again ({error}): give --checkpoint FOLDER, or build the collection again"
        ) from error


def tokenizer_of(checkpoint: str) -> Tokenizer | None:
    """The tokenizer of a checkpoint that lies on this machine; None of any other, which is not fetched."""
    from tercet.models.borrowed_heads import split_heads
    from tercet.models.checkpoint import SHIPPED, resolve_checkpoint
    from tercet.models.loader import load_tokenizer

    checkpoint, _ = split_heads(checkpoint)
    if checkpoint not in SHIPPED and not Path(checkpoint).expanduser().is_dir():
        return None
    return load_tokenizer(resolve_checkpoint(checkpoint))


def _is_of(collection: CollectionSettings, encoder: Encoder) -> bool:
    """Whether a collection was built with the encoder and its adapter."""
    from tercet.models.encoder import with_adapter
    from tercet.models.errors import AdapterNotFoundError, AdapterNotServedError, AdapterUnusableError

    try:
        fingerprint = with_adapter(encoder, collection.adapter, collection.name).info.fingerprint
    except (AdapterNotFoundError, AdapterNotServedError, AdapterUnusableError):
        return False
    return fingerprint == collection.fingerprint
