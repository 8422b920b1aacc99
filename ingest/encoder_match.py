"""Whether an encoder and adapter go with a collection: its own do, and no other."""

from __future__ import annotations

from index.errors import FingerprintMismatchError
from index.manifest import CollectionSettings
from models.encoder import EncoderInfo


def adapter_of(settings: CollectionSettings, asked: str | None, found: str | None) -> str | None:
    """The collection's adapter. Raises FingerprintMismatchError where another is asked for.

    found: what the asked name stands for: itself, or the choice of a fixed router.
    """
    if asked is not None and found != settings.adapter:
        meant = "" if found == asked else f", which stands for {adapter_words(found)},"
        raise FingerprintMismatchError(
            f"collection {settings.name!r} goes with {adapter_words(settings.adapter)}, and {asked!r}{meant} "
            "is asked for: leave the adapter out, or use a collection that was created with it"
        )
    return settings.adapter


def require_encoder(settings: CollectionSettings, encoder: EncoderInfo) -> None:
    """Raises FingerprintMismatchError where the collection was built with another encoder or adapter."""
    if settings.fingerprint != encoder.fingerprint:
        raise FingerprintMismatchError(
            f"collection {settings.name!r} was built with encoder {settings.encoder!r} and "
            f"{adapter_words(settings.adapter)}, fingerprint {settings.fingerprint}; this is "
            f"{encoder.name!r} with {adapter_words(encoder.adapter)}, fingerprint {encoder.fingerprint}: use "
            "its own encoder, or build it again, under another name or after deleting it"
        )


def adapter_words(adapter: str | None) -> str:
    """An adapter, or none, within a sentence."""
    return "no adapter" if adapter is None else f"adapter {adapter!r}"
