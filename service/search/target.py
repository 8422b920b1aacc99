"""The collection that a search or a re-ranking is about, and its encoder."""

from __future__ import annotations

from ingest.encoder_match import require_model
from service.collections import CollectionRegistry, SearchTarget
from service.encoding.service import EncodingService
from service.encoding.shelf import EncoderShelf


async def target_of(
    collections: CollectionRegistry,
    encoders: EncoderShelf,
    name: str,
    adapter: str | None,
    *,
    model: str | None = None,
    with_defaults: bool,
    with_effort: bool = False,
) -> tuple[SearchTarget, EncodingService]:
    """The collection's snapshot, its stored defaults and effort where they are wanted, and its encoder.

    adapter, model: what is asked for, if anything, the model by name or fingerprint. Raises
    CollectionNotFoundError, DamagedIndexError, FingerprintMismatchError where another model is asked for, and
    what `EncoderShelf.of_collection` raises.
    """
    target = await collections.open_with_defaults(name, defaults=with_defaults, effort=with_effort)
    require_model(target.snapshot.settings, model)  # before an encoder is opened in vain
    return target, await encoders.of_collection(target.snapshot.settings, adapter)
