"""Which encoder and adapter go with a collection: its own, and no other."""

from __future__ import annotations

from typing import Protocol

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import FingerprintMismatchError
from tercet.ingest.encoder_match import adapter_of, adapter_words
from tercet.models.encoder import EncoderInfo
from tercet.models.errors import AdapterNotFoundError


class InfoOf(Protocol):
    """`EncodingService.info_of`."""

    async def __call__(self, adapter: str | None, collection: str | None = None) -> EncoderInfo: ...


async def info_for(settings: CollectionSettings, requested: str | None, info_of: InfoOf) -> EncoderInfo:
    """What this server encodes a collection's texts with; its fingerprint is still to be compared.

    Raises AdapterNotFoundError for an adapter that is asked for and unknown, FingerprintMismatchError where
    it is not the collection's or where the collection's is not here, and what `info_of` raises.
    """
    resolved = None if requested is None else (await info_of(requested, settings.name)).adapter
    adapter = adapter_of(settings, requested, resolved)
    try:
        return await info_of(adapter)
    except AdapterNotFoundError as error:
        raise FingerprintMismatchError(
            f"collection {settings.name!r} goes with {adapter_words(adapter)} (fingerprint "
            f"{settings.fingerprint}), which this server does not have ({error}): add it and start the "
            "server again, or build the collection again"
        ) from error
