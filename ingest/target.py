"""The collection that a build writes to: opened, or created for the encoder, or refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from tercet.index.bm25.languages import Bm25Language
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection, delete_collection
from tercet.index.dense.kinds import DenseKind
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import (
    CollectionExistsError,
    CollectionNotFoundError,
    SearchIndexError,
)
from tercet.index.token_codecs import TokenCodec
from tercet.index.windows.settings import WindowChoice, WindowSettings, default_windows
from tercet.ingest.encoder_match import adapter_of, require_encoder
from tercet.models.encoder import EncoderInfo
from tercet.models.representations import LexicalKind


class RequestedSettings(TypedDict, total=False):
    """What is chosen for a new collection; what is None or not there is not.

    dense_kind, dense_memory_bytes: by default auto and half of the memory. token_codec: by default int8; the
    residual ones learn a codebook from some of the documents first. token_pooling: how many tokens share one
    token vector, by default 1. title: for people. lexical: by default what the encoder recommends. bm25:
    whether there is that side, by default not, and bm25_language the language of its words. window: by
    default as long as the encoder reads; without windows documents are cut there. partitioned: whether
    documents are placed by their partitions, by default not.
    """

    dense_kind: DenseKind | None
    dense_memory_bytes: int | None
    token_codec: TokenCodec | None
    token_pooling: int | None
    fields: Mapping[str, FieldType] | None
    title: str | None
    lexical: LexicalKind | None
    bm25: bool | None
    bm25_language: Bm25Language | None
    window: WindowChoice
    partitioned: bool | None


def exists(root: Path, name: str) -> bool:
    """Whether there is a collection, or an alias of one, of this name."""
    try:
        Collection.open(root, name)
    except CollectionNotFoundError:
        return False
    return True


def open_or_create(
    root: Path, name: str, encoder: EncoderInfo, settings: Mapping[str, Any]
) -> tuple[Collection, bool]:
    """The collection, and whether it had to be created, with the settings asked for.

    Raises FingerprintMismatchError or CollectionExistsError where it exists otherwise.
    """
    try:
        collection = Collection.open(root, name)
    except CollectionNotFoundError:
        return Collection.create(root, name, settings_for(name, encoder, settings)), True
    require_settings(collection.settings, encoder, settings)
    return collection, False


def require_settings(present: CollectionSettings, encoder: EncoderInfo, settings: Mapping[str, Any]) -> None:
    """Raises FingerprintMismatchError or CollectionExistsError where a collection that is there has another
    encoder, or other settings than those asked for.
    """
    require_encoder(present, encoder)
    for key, value in settings.items():
        stored = getattr(present, "own_fields" if key == "fields" else key)
        if stored != value:
            more = "; tercet collection fields declares more" if key == "fields" else ""
            raise CollectionExistsError(
                f"collection {present.name!r} exists {_shown(key, stored)}, and is asked for "
                f"{_shown(key, value)}; settings are fixed at creation{more}. Leave the option out, build "
                "under another name, or delete the collection first (DELETE /collections/NAME, or remove its "
                "folder)."
            )


def _shown(key: str, value: object) -> str:
    """A setting in words, such as `with windows of 256 tokens, overlap 64` or `without bm25`."""
    name = {"window": "windows"}.get(key, key)
    if isinstance(value, WindowSettings):
        return f"with {name} of {value}"
    if isinstance(value, Mapping) and value:
        return f"with {name} " + ", ".join(f"{field}:{kind}" for field, kind in sorted(value.items()))
    if value is True:
        return f"with {name}"
    return f"with {name} {value}" if value else f"without {name}"


def chosen(requested: Mapping[str, Any]) -> dict[str, Any]:
    """What of these settings was chosen, by name: None was not, and windows that are False are to be none."""
    given = {key: value for key, value in requested.items() if value is not None}
    return {**given, "window": None} if given.get("window") is False else given


def settings_for(name: str, encoder: EncoderInfo, settings: Mapping[str, Any]) -> CollectionSettings:
    """Settings of a new collection for an encoder. settings: what else is chosen, by name; where they are not
    among them, `lexical` is the encoder's recommendation, windows are as long as it reads, and an encoder
    without token vectors needs no codec.

    Raises InvalidNameError, and ValueError for a setting that does not hold.
    """
    usual: dict[str, Any] = {"lexical": encoder.lexical, "window": default_windows(encoder.max_length)}
    if "sparse" not in encoder.sides:
        usual["lexical"] = "plain"
    if "colbert" not in encoder.sides:
        usual["token_codec"] = "none"  # noqa: S105  # no secret
    return CollectionSettings(
        name=name,
        encoder=encoder.name,
        fingerprint=encoder.fingerprint,
        dense_dimension=encoder.dense_dimension,
        colbert_dimension=encoder.colbert_dimension,
        vocabulary_size=encoder.vocabulary_size,
        adapter=encoder.adapter,
        checkpoint=encoder.checkpoint,
        **{**usual, **settings},
    )


def chosen_adapter(
    root: Path, name: str, requested: str | None, resolve: Callable[[str, str], str | None]
) -> str | None:
    """The adapter to build a collection with: its own, or for a new one what is asked for.

    resolve: `Encoder.resolve_adapter`. Raises FingerprintMismatchError where it exists with another.
    """
    resolved = None if requested is None else resolve(requested, name)
    try:
        return adapter_of(Collection.open(root, name).settings, requested, resolved)
    except CollectionNotFoundError:
        return resolved


def remove_unpublished(collection: Collection, root: Path) -> None:
    """Removes a collection that a failed first build created, unless something was published in it since."""
    with contextlib.suppress(SearchIndexError):  # deleted or being built by another process meanwhile
        if collection.current() is None:
            delete_collection(root, collection.settings.name)
