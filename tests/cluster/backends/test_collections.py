"""The collections of an engine: which are seen, what is known of them, and what happens when that changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client import models

from tercet.cluster.backends.app import engine_of
from tercet.cluster.backends.collections import EngineCollections
from tercet.cluster.backends.milvus.engine import MilvusEngine
from tercet.cluster.backends.qdrant.engine import QdrantEngine
from tercet.index.candidates import CandidateLimits
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import CollectionNotFoundError
from tercet.index.live.collection import LiveCollection
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.models.encoder import encode
from tercet.service.exceptions import BackendError, NotInBackendError, SettingsError
from tercet.service.settings.reading import load_settings
from tercet.service.settings.settings import Settings
from tercet.transfer.milvus.connection import MilvusPlace
from tercet.transfer.qdrant.connection import QdrantPlace
from tercet.transfer.qdrant.points import point_id

GONE = ["d/2 é", "d/3 é", "d/11 é"]


def test_a_collection_that_changes_is_counted_anew(
    make: Callable[..., Any], engines: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    own = make("idf")
    engine = engines("qdrant", own)
    collections = EngineCollections(engine)
    terms = np.arange(own.settings.vocabulary_size, dtype=np.int32)
    before = collections.snapshot("idf")
    assert before.idf is not None
    assert own.idf is not None
    assert before.idf.of_terms(terms).tolist() == own.idf.of_terms(terms).tolist()
    assert (before.documents, before.version) == (61, f"{own.name}.61")
    engine._client.delete("idf", models.PointIdsList(points=[point_id(id) for id in GONE]))
    collections.release_superseded()
    assert collections.snapshot("idf") is before  # it is not time yet
    monkeypatch.setattr("tercet.cluster.backends.collections.LOOK_SECONDS", -1.0)
    monkeypatch.setattr("tercet.cluster.backends.collections.LOOK_SHARE", 1e9)
    collections.release_superseded()
    after = collections.snapshot("idf")
    assert (after.documents, after.version) == (58, f"{own.name}.58")
    with LiveCollection(Collection.open(tmp_path / "collections", "idf")) as live:
        live.delete(GONE)
        left = live.snapshot()
        assert after.idf is not None
        assert left.idf is not None
        assert after.idf.of_terms(terms).tolist() == left.idf.of_terms(terms).tolist()
    collections.release_superseded()
    assert collections.snapshot("idf") is after
    engine._client.delete_collection("idf")
    collections.release_superseded()
    with pytest.raises(CollectionNotFoundError, match="has no collection 'idf' that Tercet"):
        collections.snapshot("idf")


def test_what_no_export_wrote_is_not_seen_or_named(
    make: Callable[..., Any], engines: Callable[..., Any], tiny: Any
) -> None:
    own = make("plain")
    engine = engines("qdrant", own)
    engine._client.create_collection("others", vectors_config={})
    collections = EngineCollections(engine)
    assert collections.names() == ["plain"]
    assert [each.documents for each in collections.list(["others", "plain"])] == [61]
    query, there = encode(tiny, ["hot tea"], "query"), collections.snapshot("plain")
    assert there.answer(SnapshotQuery(query)).hits == own.search(query).hits
    for payload, fault in (
        ({"id": "d/5 é", "text": 5}, "is no document that an export wrote: .*text"),
        ({"id": "d/5 é", "text": "tea", "metadata": {"year": "late"}}, "field 'year' is declared as integer"),
    ):
        engine._client.overwrite_payload("plain", payload, points=[point_id("d/5 é")])
        with pytest.raises(BackendError, match=fault):
            there.answer(SnapshotQuery(query))


def test_an_engine_that_does_not_answer_is_named() -> None:
    collections = EngineCollections(QdrantEngine(QdrantPlace("http://127.0.0.1:9", timeout_seconds=1)))
    with pytest.raises(BackendError, match=r"Qdrant at http://127\.0\.0\.1:9 refused or does not answer"):
        collections.open_written()
    with pytest.raises(BackendError, match=r"Qdrant at http://127\.0\.0\.1:9 refused"):
        collections.snapshot("plain")
    with pytest.raises(BackendError, match=r"Milvus at http://127\.0\.0\.1:9 refused or does not answer"):
        MilvusEngine(MilvusPlace("http://127.0.0.1:9", timeout_seconds=0.2))


@pytest.mark.slow
def test_a_filter_that_cannot_be_said_is_refused_where_it_leaves_too_few(
    pair: Callable[..., Any], tiny: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tercet.cluster.backends.candidates.MOST_PROPOSED", 16)
    there = pair("milvus", "plain").there
    query = encode(tiny, ["hot tea"], "query")
    rare = parse_filter({"not": {"or": [{"exists": "year"}, {"exists": "kind"}]}})
    with pytest.raises(NotInBackendError, match=r"allows . of the 16 best of its dense side"):
        there.answer(SnapshotQuery(query, candidates=CandidateLimits(4, 4), filter=rare))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backend": "qdrant"}, "backend and backend_url go together"),
        ({"backend_url": "http://127.0.0.1:6333"}, "backend and backend_url go together"),
        ({"backend": "vespa", "backend_url": "http://127.0.0.1:6333"}, "backend"),
        ({"backend": "milvus", "backend_url": "ftp://127.0.0.1"}, "is not a URL"),
        (
            {"backend": "milvus", "backend_url": "http://x", "shards": "http://y"},
            "collections have one place: give shards or backend",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(given)


def test_the_place_of_an_engine_is_a_url_or_a_path(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"the file of Milvus Lite ends in \.db"):
        engine_of(Settings(backend="milvus", backend_url=str(tmp_path / "milvus")))
    (tmp_path / "milvus.db").mkdir()
    for backend, name in (("qdrant", "."), ("milvus", "milvus.db")):
        with pytest.raises(SettingsError, match=f"{backend} did not write what is there"):
            engine_of(Settings(backend=backend, backend_url=str(tmp_path / name)))
    with pytest.raises(SettingsError, match="knows Strong, Session, Bounded, Eventually"):
        engine_of(Settings(backend="milvus", backend_url="http://x", backend_consistency="all"))
    key = tmp_path / "key"
    key.write_text("between-us\n")
    settings = load_settings(
        {"backend": "qdrant", "backend_url": "https://127.0.0.1:9/", "backend_key_file": key}
    )
    assert settings.backend_key is not None
    assert settings.backend_key.get_secret_value() == "between-us"
    assert engine_of(settings).name == "Qdrant at https://127.0.0.1:9"
