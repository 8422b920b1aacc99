"""The collection that a search or a re-ranking is about, and its encoder."""

from __future__ import annotations

from tercet.ingest.encoder_match import require_model
from tercet.service.collections.readable import ReadableSnapshot, SearchTarget
from tercet.service.collections.served import Reads
from tercet.service.encoding.service import EncodingService
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.load.pools import Pool
from tercet.service.load.reading import ANY_TIME, Reading


async def target_of(
    collections: Reads,
    encoders: EncoderShelf,
    pool: Pool,
    name: str,
    adapter: str | None,
    *,
    model: str | None = None,
    with_defaults: bool,
    with_effort: bool = False,
    options: Reading = ANY_TIME,
) -> tuple[SearchTarget[ReadableSnapshot], EncodingService]:
    """The collection's snapshot, its stored defaults and effort where they are wanted, and its encoder.

    pool: where the snapshot's languages are detected, which say what sides weigh without stored defaults.
    adapter, model: what is asked for, if anything, the model by name or fingerprint. Raises
    CollectionNotFoundError, DamagedIndexError, FingerprintMismatchError where another model is asked for, and
    what `EncoderShelf.of_collection` raises.
    """
    target = await collections.open_with_defaults(name, options, defaults=with_defaults, effort=with_effort)
    if with_defaults:
        await detect_languages(target, pool)
    require_model(target.snapshot.settings, model)  # before an encoder is opened in vain
    return target, await encoders.of_collection(target.snapshot.settings, adapter)


async def detect_languages(target: SearchTarget[ReadableSnapshot], pool: Pool) -> None:
    """Has the snapshot know its languages where no defaults are stored, so that they say what sides weigh."""
    if target.defaults is None and target.snapshot.known_languages is None:
        await pool.run(target.snapshot.languages)
