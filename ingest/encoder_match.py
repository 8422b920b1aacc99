"""Whether an encoder and adapter go with a collection: its own do, and no other."""

from __future__ import annotations

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import FingerprintMismatchError
from tercet.models.checkpoint import opens_by_name
from tercet.models.encoder import EncoderInfo


def checkpoint_of(settings: CollectionSettings) -> str | None:
    """What opens a collection's encoder: where that was when the collection was created, or else its name.

    None where neither is known.
    """
    return settings.checkpoint or (settings.encoder if opens_by_name(settings.encoder) else None)


def adapter_of(settings: CollectionSettings, requested: str | None, resolved: str | None) -> str | None:
    """The collection's adapter. Raises FingerprintMismatchError where another is asked for.

    resolved: what the requested name stands for: itself, or the choice of a fixed router.
    """
    if requested is not None and resolved != settings.adapter:
        meant = "" if resolved == requested else f", which stands for {adapter_words(resolved)},"
        raise FingerprintMismatchError(
            f"collection {settings.name!r} goes with {adapter_words(settings.adapter)}, and "
            f"{requested!r}{meant} is asked for: leave the adapter out, or use a collection that was created "
            "with it"
        )
    return settings.adapter


def require_encoder(settings: CollectionSettings, encoder: EncoderInfo) -> None:
    """Raises FingerprintMismatchError where the collection was built with another encoder or adapter."""
    if settings.fingerprint == encoder.fingerprint:
        return
    with_adapters = settings.adapter is not None or encoder.adapter is not None
    own, other = (
        f"{name!r}"
        + (f" with {adapter_words(adapter)}" if with_adapters else "")
        + f" (fingerprint {fingerprint})"
        for name, adapter, fingerprint in (
            (settings.encoder, settings.adapter, settings.fingerprint),
            (encoder.name, encoder.adapter, encoder.fingerprint),
        )
    )
    wanted = "the one of that fingerprint" if settings.encoder == encoder.name else settings.encoder
    raise FingerprintMismatchError(
        f"collection {settings.name!r} was built with encoder {own}, and this is {other}: give --checkpoint "
        f"{wanted} (or TERCET_CHECKPOINT), or build it again under another name"
    )


def require_model(settings: CollectionSettings, model: str | None) -> None:
    """Raises FingerprintMismatchError where a model is asked for that is not the collection's encoder.

    model: its name or fingerprint, or None for whichever it is.
    """
    if model not in (None, settings.encoder, settings.fingerprint):
        raise FingerprintMismatchError(
            f"collection {settings.name!r} was built with encoder {settings.encoder!r} (fingerprint "
            f"{settings.fingerprint}), and {model!r:.100} is asked for: leave it out, or use a collection "
            "that was built with it"
        )


def adapter_words(adapter: str | None) -> str:
    """An adapter, or none, within a sentence."""
    return "no adapter" if adapter is None else f"adapter {adapter!r}"
