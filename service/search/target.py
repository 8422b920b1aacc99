"""The collection that a search or a re-ranking is about, checked against encoder and adapter."""

from __future__ import annotations

from ingest.encoder_match import require_encoder
from service.adapters import info_for
from service.collections import CollectionRegistry, SearchTarget
from service.encoding.service import EncodingService


async def target_of(
    collections: CollectionRegistry,
    encoding: EncodingService,
    name: str,
    adapter: str | None,
    *,
    with_defaults: bool,
    with_effort: bool = False,
) -> SearchTarget:
    """The collection's snapshot, and its stored defaults and effort where they are wanted.

    adapter: what is asked for, if anything. Raises CollectionNotFoundError, FingerprintMismatchError where
    this server's encoder or the adapter is another than the collection's, and DamagedIndexError.
    """
    target = await collections.open_with_defaults(name, defaults=with_defaults, effort=with_effort)
    settings = target.snapshot.settings
    require_encoder(settings, await info_for(settings, adapter, encoding.info_of))
    return target
