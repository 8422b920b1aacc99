"""The collection that a search or a re-ranking is about, and its encoder."""

from __future__ import annotations

from service.collections import CollectionRegistry, SearchTarget
from service.encoding.service import EncodingService
from service.encoding.shelf import EncoderShelf


async def target_of(
    collections: CollectionRegistry,
    encoders: EncoderShelf,
    name: str,
    adapter: str | None,
    *,
    with_defaults: bool,
    with_effort: bool = False,
) -> tuple[SearchTarget, EncodingService]:
    """The collection's snapshot, its stored defaults and effort where they are wanted, and its encoder.

    adapter: what is asked for, if anything. Raises CollectionNotFoundError, DamagedIndexError, and what
    `EncoderShelf.of_collection` raises.
    """
    target = await collections.open_with_defaults(name, defaults=with_defaults, effort=with_effort)
    return target, await encoders.of_collection(target.snapshot.settings, adapter)
