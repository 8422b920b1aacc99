"""The encoder that a command opens: the one that a collection was built with, or an adapter trained on."""

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

    Where a flag --checkpoint, --heads or --mcls-every is given, that one is opened. Whether it is the
    collection's is still to be checked. Raises CheckpointError that says what to give, and other ModelError.
    """
    from tercet.ingest.encoder_match import checkpoint_of
    from tercet.models.errors import CheckpointError
    from tercet.service.encoding.service import local_encoder

    named = checkpoint_of(collection)
    if settings.names_encoder or named is None:
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


def adapted_encoder(settings: Settings, adapter: str | None) -> Encoder:
    """The settings' encoder with an adapter or router, where one is given.

    Without a flag --checkpoint it is the one that the adapter was trained on, where its name says where it
    is. Raises CheckpointError and other ModelError.
    """
    from tercet.models.checkpoint import checkpoint_name, opens_by_name
    from tercet.models.encoder import with_adapter
    from tercet.models.variants import Variant
    from tercet.service.encoding.service import local_encoder

    base = None if adapter is None or "checkpoint" in settings.flags else _base_of(settings, adapter)
    known = base is not None and base != checkpoint_name(settings.checkpoint) and opens_by_name(base)
    # With what flags change of it, so that an adapter of the base as it is says that it is of another.
    changed = Variant(base, settings.heads, settings.mcls_every) if base is not None and known else None
    return with_adapter(local_encoder(settings, None if changed is None else changed.name), adapter)


def _base_of(settings: Settings, adapter: str) -> str | None:
    """What the checkpoint is called on which an adapter or router was trained; None where none is named."""
    from tercet.models.adapters.files import ROUTER_FILE, is_adapter, read_adapter
    from tercet.models.adapters.router_files import read_router

    folder = settings.adapters_folder / adapter.partition(":")[0]
    if is_adapter(folder):
        return read_adapter(folder).base.name
    router = read_router(folder).base if (folder / ROUTER_FILE).is_file() else None
    return None if router is None else router.name


def tokenizer_of(checkpoint: str) -> Tokenizer | None:
    """The tokenizer of a checkpoint that lies on this machine; None of any other, which is not fetched."""
    from tercet.models.checkpoint import SHIPPED, resolve_checkpoint
    from tercet.models.loader import load_tokenizer
    from tercet.models.variants import Variant

    variant = Variant.of(checkpoint)
    checkpoint = variant.checkpoint
    if checkpoint not in SHIPPED and not Path(checkpoint).expanduser().is_dir():
        return None
    return load_tokenizer(resolve_checkpoint(checkpoint), variant.mcls_every)


def _is_of(collection: CollectionSettings, encoder: Encoder) -> bool:
    """Whether a collection was built with the encoder and its adapter."""
    from tercet.models.encoder import with_adapter
    from tercet.models.errors import AdapterNotFoundError, AdapterNotServedError, AdapterUnusableError

    try:
        fingerprint = with_adapter(encoder, collection.adapter, collection.name).info.fingerprint
    except (AdapterNotFoundError, AdapterNotServedError, AdapterUnusableError):
        return False
    return fingerprint == collection.fingerprint
