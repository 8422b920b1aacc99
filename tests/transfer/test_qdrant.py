"""Qdrant, in its local mode: the real client, real collections, the printed script run as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tercet.index.collection import Collection, list_collections
from tercet.index.errors import FingerprintMismatchError
from tercet.index.verify import verify
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.errors import SourceError
from tercet.ingest.ready import build_ready
from tercet.models.encoder import encode
from tercet.transfer.errors import TargetExistsError, TransferError
from tercet.transfer.push import export

client = pytest.importorskip("qdrant_client", reason="install tercet[qdrant]")

from tercet.transfer.qdrant.connection import QdrantPlace
from tercet.transfer.qdrant.points import point_id
from tercet.transfer.qdrant.source import QdrantSource
from tercet.transfer.qdrant.target import QdrantTarget


@pytest.fixture
def place(tmp_path: Path) -> QdrantPlace:
    return QdrantPlace(path=str(tmp_path / "qdrant"))


def pushed(collection: Collection, place: QdrantPlace, **options: Any) -> tuple[Any, QdrantTarget]:
    snapshot = collection.snapshot()
    target = QdrantTarget(place, "docs", snapshot.settings, 10)
    assert export(snapshot, target, **options) == 57
    return snapshot, target


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "idf", "float16", "none"])
def test_the_formula_query_gives_our_three_way_order(
    make: Any, place: QdrantPlace, queries: list[str], ask: Any, hits: Any, run_script: Any,
    require_same_order: Any, kind: str,
) -> None:  # fmt: skip
    snapshot, target = pushed(make(kind), place)
    for text in queries:
        require_same_order(run_script(target.query(ask(snapshot, text))), hits(snapshot, text))


@pytest.mark.slow
def test_a_candidate_of_one_side_is_scored_by_the_others(
    make: Any, place: QdrantPlace, tiny: Any, queries: list[str], ask: Any, run_script: Any, monkeypatch: Any
) -> None:
    """Few candidates, so that most of them are found by one side alone."""
    monkeypatch.setattr("tercet.transfer.qdrant.query.CANDIDATES", 4)
    snapshot, target = pushed(make("idf"), place)
    for text in queries:
        ids, scores = snapshot.score_all(encode(tiny, [text], "query"))
        sums = dict(zip(ids, (scores[:, :3] @ [1.0, 0.5, 2.0]).tolist(), strict=True))
        found = run_script(target.query(ask(snapshot, text)))
        assert 4 <= len(found) <= 8
        for score, identifier in found:
            assert score == pytest.approx(sums[identifier], abs=1e-5)


def test_each_side_gives_our_exact_search(
    make: Any, place: QdrantPlace, tiny: Any, queries: list[str], ask: Any
) -> None:
    snapshot, _ = pushed(make("idf"), place)
    there = place.open()
    try:
        for text in queries:
            query = ask(snapshot, text)
            ids, scores = snapshot.score_all(encode(tiny, [text], "query"))
            terms = client.models.SparseVector(
                indices=query.token_ids.tolist(), values=query.weights.tolist()
            )
            for side, vector in enumerate((query.dense.tolist(), terms)):
                name = ("dense", "sparse")[side]
                found = there.query_points("docs", query=vector, using=name, limit=10).points
                expected = dict(zip(ids, scores[:, side].tolist(), strict=True))
                best = sorted(expected.values(), reverse=True)[: len(found)]
                assert [point.score for point in found] == pytest.approx(best, abs=2e-6)
                for point in found:
                    assert point.score == pytest.approx(expected[point.payload["id"]], abs=2e-6)
    finally:
        there.close()


def test_windows_are_a_multivector_of_which_the_best_counts(
    make: Any, place: QdrantPlace, tiny: Any, queries: list[str], ask: Any, run_script: Any
) -> None:
    snapshot, target = pushed(make("windows"), place)
    assert "all windows of a document together" in target.remarks[0]
    there = place.open()
    for text in queries:
        ids, scores = snapshot.score_all(encode(tiny, [text], "query"))
        expected = dict(zip(ids, scores[:, 0].tolist(), strict=True))
        found = there.query_points(
            "docs", query=[ask(snapshot, text).dense.tolist()], using="dense", limit=57
        ).points
        assert {point.payload["id"] for point in found} == set(ids)
        for point in found:
            assert point.score == pytest.approx(expected[point.payload["id"]], abs=2e-6)
    there.close()
    assert len(run_script(target.query(ask(snapshot, queries[0])))) == 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["idf", "none", "windows"])
def test_what_was_pushed_is_read_back_to_the_last_digit(
    make: Any, place: QdrantPlace, tiny: Any, tmp_path: Path, queries: list[str], kind: str
) -> None:
    own, _ = pushed(make(kind), place)
    source = QdrantSource(place, "docs")
    report = build_ready(LocalDocuments(tiny), tmp_path / "other", "back", source)
    source.close()
    assert (report.documents, report.skipped) == (57, 0)
    assert verify(tmp_path / "other", "back") == []
    back = Collection.open(tmp_path / "other", "back").snapshot()
    for text in queries:
        query = encode(tiny, [text], "query")
        assert own.search(query, top_k=57).hits == back.search(query, top_k=57).hits


def test_what_is_there_is_not_touched_without_a_word(make: Any, place: QdrantPlace) -> None:
    collection = make("plain")
    pushed(collection, place)
    with pytest.raises(TargetExistsError, match="Qdrant collection 'docs' exists: give --overwrite"):
        pushed(collection, place)
    pushed(collection, place, overwrite=True)
    pushed(collection, place, resume=True)  # puts the same points again
    there = place.open()
    assert there.count("docs").count == 57
    there.create_collection("other", vectors_config={})
    there.close()
    with pytest.raises(
        TargetExistsError, match="made of a collection with another bm25, bm25_reading, fields, lexical"
    ):
        pushed(collection_of(make, "idf"), place, resume=True)
    snapshot = collection.snapshot()
    with pytest.raises(TargetExistsError, match="was not made by an export"):
        export(snapshot, QdrantTarget(place, "other", snapshot.settings, 10), resume=True)


def collection_of(make: Any, kind: str) -> Collection:
    found: Collection = make(kind)
    return found


def test_an_interrupted_push_says_what_is_there_and_is_resumed(
    make: Any, place: QdrantPlace, monkeypatch: Any
) -> None:
    collection, writes = make("plain"), 0
    write = QdrantTarget.write

    def fail(self: QdrantTarget, documents: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == 3:
            raise KeyboardInterrupt
        write(self, documents)

    with monkeypatch.context() as patch:
        patch.setattr(QdrantTarget, "write", fail)
        with pytest.raises(
            TransferError, match="interrupted; Qdrant collection 'docs' has at least 20 documents"
        ) as caught:
            pushed(collection, place)
    assert isinstance(caught.value.__cause__, KeyboardInterrupt)
    pushed(collection, place, resume=True)
    there = place.open()
    assert there.count("docs").count == 57
    there.close()


def test_malformed_points_stop_the_build_or_are_listed(
    make: Any, place: QdrantPlace, tiny: Any, tmp_path: Path
) -> None:
    pushed(make("plain"), place)
    there = place.open()
    there.overwrite_payload("docs", {"text": "no id"}, points=[point_id("d/20 é")])
    there.delete_vectors("docs", ["dense"], points=[point_id("d/21 é")])
    there.update_vectors(
        "docs", [client.models.PointVectors(id=point_id("d/22 é"), vector={"dense": [3.0] + [0.0] * 7})]
    )
    there.close()
    encoder, root = LocalDocuments(tiny), tmp_path / "other"
    source = QdrantSource(place, "docs")
    with pytest.raises(SourceError, match="Qdrant collection 'docs' point "):
        build_ready(encoder, root, "back", source)
    assert list_collections(root) == []
    report = build_ready(encoder, root, "back", source, on_error="skip")
    source.close()
    assert (report.documents, report.skipped) == (54, 3)
    said = " ".join(map(str, report.skips))
    for reason in ('"id" (or "_id") is missing', "it has no vector dense", "dense has a vector of length 3"):
        assert reason in said


def test_vectors_of_another_encoder_are_refused_with_both_fingerprints(
    make: Any, place: QdrantPlace, tiny: Any, tmp_path: Path
) -> None:
    pushed(make("plain"), place)
    other, source = type(tiny)(seed=1), QdrantSource(place, "docs")
    with pytest.raises(FingerprintMismatchError) as caught:
        build_ready(LocalDocuments(other), tmp_path / "other", "back", source)
    source.close()
    assert tiny.info.fingerprint in str(caught.value)
    assert other.info.fingerprint in str(caught.value)


def test_a_collection_that_is_not_there_or_nobody_exported(place: QdrantPlace) -> None:
    with pytest.raises(
        SourceError, match=r"Qdrant collection 'docs' refused or does not answer: .*not found"
    ):
        QdrantSource(place, "docs")
    there = place.open()
    there.create_collection("docs", vectors_config={})
    there.close()
    with pytest.raises(SourceError, match="does not say which encoder its vectors are of"):
        QdrantSource(place, "docs")
    with pytest.raises(SourceError, match="refused or does not answer"):
        QdrantSource(QdrantPlace(url="http://127.0.0.1:1"), "docs")
