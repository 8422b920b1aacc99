"""Milvus Lite: the real client, a real file, the printed script run as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.encoder import encode
from tercet.transfer.errors import TargetExistsError, TransferError
from tercet.transfer.push import export

pymilvus = pytest.importorskip("pymilvus", reason="install tercet[milvus]")
pytest.importorskip("milvus_lite", reason="install tercet[milvus]")

from tercet.transfer.milvus.connection import MilvusPlace
from tercet.transfer.milvus.target import MilvusTarget


@pytest.mark.slow
def test_push_then_query(
    make: Any, tiny: Any, tmp_path: Path, queries: list[str], ask: Any, hits: Any, run_script: Any,
    require_same_order: Any,
) -> None:  # fmt: skip
    """Each side gives our exact search, and the script our three-way order; a second push is refused."""
    collection = make("idf")
    snapshot, place = collection.snapshot(), MilvusPlace(str(tmp_path / "milvus.db"))
    target = MilvusTarget(place, "docs", snapshot.settings, 10)
    assert export(snapshot, target) == 57
    there = pymilvus.MilvusClient(place.uri)
    there.load_collection("docs")
    for text in queries:
        query = ask(snapshot, text)
        ids, scores = snapshot.score_all(encode(tiny, [text], "query"))
        terms = dict(zip(query.token_ids.tolist(), query.weights.tolist(), strict=True))
        for side, vector in enumerate((query.dense, terms)):
            name = ("dense", "sparse")[side]
            (found,) = there.search("docs", [vector], anns_field=name, limit=10)
            expected = dict(zip(ids, scores[:, side].tolist(), strict=True))
            best = sorted(expected.values(), reverse=True)[: len(found)]
            assert [hit["distance"] for hit in found] == pytest.approx(best, abs=2e-6)
            for hit in found:
                assert hit["distance"] == pytest.approx(expected[hit["id"]], abs=2e-6)
    stored = there.get("docs", ["d/20 é"], output_fields=["title", "text", "metadata"])[0]
    document = snapshot.get("d/20 é")
    assert document == Document(stored["id"], stored["text"], stored["title"], stored["metadata"])
    there.close()
    for text in queries[:5]:
        require_same_order(run_script(target.query(ask(snapshot, text))), hits(snapshot, text))
    with pytest.raises(TargetExistsError, match="Milvus collection 'docs' exists: give --overwrite"):
        export(snapshot, MilvusTarget(place, "docs", snapshot.settings, 10))
    assert export(snapshot, MilvusTarget(place, "docs", snapshot.settings, 50), resume=True) == 57
    there = pymilvus.MilvusClient(place.uri)
    assert there.query("docs", filter="", output_fields=["count(*)"])[0]["count(*)"] == 57
    there.close()
    other = make("float16").snapshot()
    with pytest.raises(TargetExistsError, match="another bm25, bm25_reading, token_codec"):
        export(other, MilvusTarget(place, "docs", other.settings, 10), resume=True)
    assert export(other, MilvusTarget(place, "docs", other.settings, 10), overwrite=True) == 57


@pytest.mark.slow
def test_a_file_that_another_process_has_is_one_line(tmp_path: Path) -> None:
    place = MilvusPlace(str(tmp_path / "milvus.db"))
    opening = f"from {MilvusPlace.__module__} import MilvusPlace\nMilvusPlace({place.uri!r}).open()"
    client = place.open()
    done = subprocess.run([sys.executable, "-c", opening], capture_output=True, text=True, check=False)
    client.close()
    *traceback, message = done.stderr.splitlines()
    assert "a file of Milvus Lite, which one process has at a time" in message
    assert not any("DataDirLockedError" in line for line in traceback)  # which Milvus Lite logs


def test_what_it_cannot_hold_is_refused_before_anything_is_written(
    make: Any, tiny: Any, tmp_path: Path
) -> None:
    place = MilvusPlace(str(tmp_path / "milvus.db"))
    windows = make("windows").snapshot()
    with pytest.raises(
        TransferError, match="has windows, and Milvus one dense vector for a document: export to"
    ):
        MilvusTarget(place, "docs", windows.settings, 10)
    source = tmp_path / "long.jsonl"
    source.write_text(json.dumps({"id": "long", "text": "tea " * 17_000}))
    build_collection(LocalDocuments(tiny), tmp_path / "c", "long", source, window=False)
    from tercet.index.collection import Collection

    snapshot = Collection.open(tmp_path / "c", "long").snapshot()
    with pytest.raises(
        TransferError, match=r"document 'long' has 68000 bytes of text; Milvus collection 'docs' takes 65535"
    ):
        export(snapshot, MilvusTarget(place, "docs", snapshot.settings, 10))
    assert not Path(place.uri).exists()
