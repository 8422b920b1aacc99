"""Whether several collections can be searched as one: what they share, and the settings of them all.

One query is encoded once, and each score must mean the same in all of them. So they agree in whatever a
query's representations, a stored document's and their scores depend on; how their dense vectors are searched
may differ. Token vectors of a residual codec are compared by their codebook, which a build learns from its
own documents: collections with different ones do not go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.declared import SharedFields
from tercet.index.errors import UnlikeCollectionsError

SHARED = (
    "fingerprint",
    "adapter",
    "dense_dimension",
    "colbert_dimension",
    "vocabulary_size",
    "token_codec",
    "codebook",
    "token_pooling",
    "lexical",
    "bm25",
    "bm25_language",
    "window",
    "partitioned",
)


def united_settings(alias: str, collections: Sequence[CollectionSettings]) -> CollectionSettings:
    """The settings of several collections as one that has the alias's name.

    Its fields are those that all of them declare. Raises UnlikeCollectionsError, which names two that differ,
    in what, and how.
    """
    first = collections[0]
    for other in collections[1:]:
        for name in SHARED:
            if getattr(first, name) != getattr(other, name):
                raise _unlike(alias, name, first, other, _shown(first, name), _shown(other, name))
    kinds_of = dict(first.fields)
    for other in collections[1:]:
        for name, kind in other.fields.items():
            if kinds_of.setdefault(name, kind) != kind:
                declaring = next(member for member in collections if name in member.fields)
                raise _unlike(alias, f"field {name!r}", declaring, other, kinds_of[name], kind)
    kinds = {member.dense_kind for member in collections}
    return replace(
        first,
        name=alias,
        title=None,
        dense_kind=first.dense_kind if len(kinds) == 1 else "auto",
        dense_memory_bytes=None,
        checkpoint=next((member.checkpoint for member in collections if member.checkpoint is not None), None),
        fields=SharedFields.of({member.name: member.fields for member in collections}),
        later_fields=(),
        lineage=None,
    )


def names_of(collections: Sequence[str]) -> str:
    """Names within a sentence."""
    return " and ".join(filter(None, [", ".join(map(repr, collections[:-1])), repr(collections[-1])]))


def _shown(settings: CollectionSettings, name: str) -> Any:
    value = getattr(settings, name)
    if name == "codebook":
        return None if value is None else value.sha256[:12]
    if name == "window":
        return None if value is None else f"{value.tokens} tokens, {value.overlap} of them shared"
    return value


def _unlike(
    alias: str,
    what: str,
    member: CollectionSettings,
    other: CollectionSettings,
    first: object,
    second: object,
) -> UnlikeCollectionsError:
    return UnlikeCollectionsError(
        f"alias {alias!r} cannot mean both collection {member.name!r} and {other.name!r}: their {what} is "
        f"{_words(first)} in the one and {_words(second)} in the other; {_remedy(what)}, or leave one out of "
        "the alias"
    )


def _remedy(what: str) -> str:
    if what in ("token_codec", "codebook"):
        return "build each with --token-codec int8, which has no codebook"
    return "build one of them again like the other"


def _words(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
