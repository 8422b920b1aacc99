"""Settings: what is written comes back, and anything unexpected is damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import DamagedIndexError, InvalidNameError
from tercet.index.windows.settings import WindowSettings

Alter = Callable[[Path, Callable[[dict[str, Any]], Any]], None]

VALUES: dict[str, Any] = {
    "name": "demo",
    "encoder": "tiny",
    "fingerprint": "abc",
    "dense_dimension": 4,
    "colbert_dimension": 2,
    "vocabulary_size": 10,
}


def test_settings_come_back(tmp_path: Path) -> None:
    path = tmp_path / "collection.json"
    settings = CollectionSettings(
        **VALUES, fields={"year": "integer"}, dense_kind="hnsw", token_codec="float16"
    )
    settings.write(path)
    assert CollectionSettings.read(path) == settings
    assert settings.stores_token_vectors


def test_an_adapter_is_written_only_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "collection.json"
    without, with_one = CollectionSettings(**VALUES), CollectionSettings(**VALUES, adapter="law")
    assert "adapter" not in json.loads(without.content)
    for settings in (without, with_one):
        settings.write(path)
        assert CollectionSettings.read(path) == settings
    assert with_one.sha256 != without.sha256
    path.write_text(json.dumps({**json.loads(without.content), "adapter": None}))
    with pytest.raises(DamagedIndexError, match=r'unknown: \["adapter"\]'):
        CollectionSettings.read(path)


def test_idf_is_written_only_where_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "collection.json"
    plain, idf = CollectionSettings(**VALUES), CollectionSettings(**VALUES, lexical="idf")
    assert "lexical" not in json.loads(plain.content)
    for settings in (plain, idf):
        settings.write(path)
        assert CollectionSettings.read(path) == settings
    for value, fault in (("plain", r'unknown: \["lexical"\]'), ("bm25", 'lexical is "bm25"; use one of')):
        path.write_text(json.dumps({**json.loads(plain.content), "lexical": value}))
        with pytest.raises(DamagedIndexError, match=fault):
            CollectionSettings.read(path)


def test_bm25_is_written_only_where_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "collection.json"
    plain, english = CollectionSettings(**VALUES), CollectionSettings(**VALUES, bm25=True)
    german = CollectionSettings(**VALUES, bm25=True, bm25_language="german")
    assert not [key for key in json.loads(plain.content) if key.startswith("bm25")]
    for settings in (plain, english, german):
        settings.write(path)
        assert CollectionSettings.read(path) == settings
    for changes, fault in (
        ({"bm25": False}, r'unknown: \["bm25"\]'),
        ({"bm25": 1}, "bm25 is 1; use true or false"),
        (
            {"bm25": True},
            "has bm25_reading .*; this release reads words for BM25 in way 2: .* build it again",
        ),
        ({"bm25": True, "bm25_reading": 1}, "has bm25_reading 1; this release"),
        (
            {"bm25": True, "bm25_reading": 2, "bm25_language": "klingon"},
            'bm25_language is "klingon"; use one of',
        ),
        ({"bm25_language": "german"}, 'bm25_language is "german", but bm25 is false'),
    ):
        path.write_text(json.dumps({**json.loads(plain.content), **changes}))
        with pytest.raises(DamagedIndexError, match=fault):
            CollectionSettings.read(path)


def test_settings_are_written_only_where_they_are_unusual(tmp_path: Path) -> None:
    """Manifests repeat the checksum of `collection.json`."""
    settings = CollectionSettings(**VALUES, fields={"year": "integer"})
    keys = ["format_version", *VALUES, "dense_kind", "token_codec", "fields"]
    assert sorted(json.loads(settings.content)) == sorted(keys)


@pytest.mark.parametrize(
    "changes",
    [
        {"bm25": "yes"},
        {"bm25": None},
        {"bm25_language": "de", "bm25": True},
        {"bm25_language": "german"},
        {"lexical": "bm25"},
        {"lexical": None},
        {"adapter": "../law"},
        {"adapter": 3},
        {"dense_dimension": -1},
        {"dense_dimension": 2.0},
        {"dense_dimension": True},
        {"token_codec": "int8", "colbert_dimension": 0},
        {"vocabulary_size": -1},
        {"dense_kind": "annoy"},
        {"token_codec": "int4"},
        {"fields": {"year": "date"}},
        {"fields": {f"f{number}": "integer" for number in range(101)}},
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(changes))[:-1]}"):
        CollectionSettings(**{**VALUES, **changes})


@pytest.mark.parametrize("name", ["", "a\nb", " a", "a" * 65, "\ud800", 3])
def test_bad_field_names_are_refused(name: Any) -> None:
    with pytest.raises(InvalidNameError, match="field name"):
        CollectionSettings(**VALUES, fields={name: "keyword"})


@pytest.mark.parametrize("name", ["분류", "Product Name", "1a", "../x", "price (€)", "가" * 64])
def test_field_names_are_any_text(tmp_path: Path, name: str) -> None:
    settings = CollectionSettings(**VALUES, fields={name: "keyword"})
    settings.write(tmp_path / "collection.json")
    assert CollectionSettings.read(tmp_path / "collection.json") == settings


def test_fields_declared_later_have_a_file_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "collection.json"
    first = CollectionSettings(**VALUES, fields={"b": "keyword", "d": "integer"})
    first.write(path)
    settings = first.with_fields({"c": "boolean", "b": "keyword"}).with_fields({"a": "number"})
    assert settings.sha256 == first.sha256
    settings.write_later_fields(path)
    found = CollectionSettings.read(path)
    assert found == settings
    assert (found.first_fields, found.later_fields) == (["b", "d"], ("c", "a"))
    new = found.of_new_collection("other")
    assert (new.fields, new.later_fields, new.name) == (found.fields, (), "other")
    for content in (
        "[]",
        '{"format_version": 1, "fields": []}',
        '{"format_version": 1, "fields": {"b": "integer"}}',
    ):
        (tmp_path / "fields.json").write_text(content)
        with pytest.raises(DamagedIndexError, match=r"fields\.json"):
            CollectionSettings.read(path)


def test_an_encoder_without_token_vectors_needs_codec_none() -> None:
    settings = CollectionSettings(**{**VALUES, "colbert_dimension": 0}, token_codec="none")
    assert not settings.stores_token_vectors


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(format_version=2),
        lambda record: record.update(format_version=True),
        lambda record: record.pop("format_version"),
        lambda record: record.pop("fingerprint"),
        lambda record: record.update(color="red"),
        lambda record: record.update(name="../x"),
        lambda record: record.update(dense_dimension="4"),
        lambda record: record.update(fields=[]),
        lambda record: record.update(fields={"a": "b"}),
        lambda record: record.update(token_codec=[]),
    ],
)
def test_altered_settings_are_damage(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], alter: Alter
) -> None:
    path = tmp_path / "collection.json"
    CollectionSettings(**VALUES).write(path)
    alter(path, change)
    with pytest.raises(DamagedIndexError, match=r"collection\.json"):
        CollectionSettings.read(path)


@pytest.mark.parametrize(
    "window",
    [
        {},
        {"tokens": 16},
        {"tokens": 16, "overlap": 13},
        {"tokens": 16, "overlap": 4, "stride": 1},
        [16, 4],
        "16",
    ],
)
def test_altered_windows_are_damage(tmp_path: Path, window: object, alter: Alter) -> None:
    path = tmp_path / "collection.json"
    settings = CollectionSettings(**VALUES, window=WindowSettings(16, 4))
    settings.write(path)
    assert CollectionSettings.read(path) == settings
    alter(path, lambda record: record.update(window=window))
    with pytest.raises(DamagedIndexError, match=r"collection\.json"):
        CollectionSettings.read(path)
