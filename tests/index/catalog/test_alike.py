"""Which collections can be searched as one, and what their settings are together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tercet.index.catalog.alike import names_of, united_settings
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import UnlikeCollectionsError
from tercet.index.windows.settings import WindowSettings


@pytest.fixture
def one(make_settings: Any, three: Any) -> CollectionSettings:
    """Settings with all that several collections must share."""
    changes = {"lexical": "idf", "bm25": True, "window": WindowSettings(16, 4), "adapter": "legal"}
    settings: CollectionSettings = make_settings(three[1], "one", **changes)
    return settings


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"fingerprint": "e" * 64}, "fingerprint is f+ in the one and e+ in the other"),
        ({"adapter": None}, "adapter is legal in the one and none in the other"),
        ({"dense_dimension": 3}, "dense_dimension is 2 in the one and 3"),
        ({"colbert_dimension": 4}, "colbert_dimension is 2 in the one and 4"),
        ({"vocabulary_size": 61}, "vocabulary_size is 60 in the one and 61"),
        ({"token_codec": "float16"}, "token_codec is int8 in the one and float16"),
        ({"token_pooling": 2}, "token_pooling is 1 in the one and 2"),
        ({"lexical": "plain"}, "lexical is idf in the one and plain"),
        ({"bm25": False}, "bm25 is true in the one and false"),
        ({"bm25_language": "german"}, "bm25_language is english in the one and german"),
        ({"window": None}, "window is 16 tokens, 4 of them shared in the one and none"),
        ({"window": WindowSettings(32, 4)}, "window is 16 tokens, .* and 32 tokens"),
    ],
)
def test_what_a_score_depends_on_must_be_the_same(
    one: CollectionSettings, changes: dict[str, Any], shown: str
) -> None:
    other = replace(one, name="other", **changes)
    with pytest.raises(UnlikeCollectionsError, match=f"'all' cannot mean .*'one' and 'other': their {shown}"):
        united_settings("all", [one, replace(one, name="two"), other])


def test_what_no_score_depends_on_may_differ(one: CollectionSettings) -> None:
    other = replace(one, name="other", encoder="same", dense_kind="flat", title="Other", checkpoint="/c")
    together = united_settings("all", [one, other])
    assert (together.name, together.encoder, together.dense_kind) == ("all", "tiny", "auto")
    assert (together.title, together.checkpoint) == (None, "/c")
    assert united_settings("all", [other, replace(other, name="two")]).dense_kind == "flat"


def test_the_fields_are_those_that_all_declare_alike(one: CollectionSettings) -> None:
    first = replace(one, fields={"year": "integer", "lang": "keyword"})
    second = replace(one, name="two", fields={"year": "integer", "price": "number"}, later_fields=("year",))
    together = united_settings("all", [first, second])
    assert (together.fields, together.later_fields) == ({"year": "integer"}, ())
    third = replace(one, name="three", fields={"price": "keyword"})
    with pytest.raises(UnlikeCollectionsError, match="'two' and 'three': their field 'price' is number in"):
        united_settings("all", [first, second, third])


def test_names_within_a_sentence() -> None:
    assert [names_of(["a"]), names_of(["a", "b"]), names_of(["a", "b", "c"])] == [
        "'a'",
        "'a' and 'b'",
        "'a', 'b' and 'c'",
    ]
