"""Building collections: order, progress, failure, cancellation, rebuilding."""

import json
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from index.collection import Collection
from index.errors import CollectionExistsError, CollectionNotFoundError, FingerprintMismatchError
from index.verify import verify
from models.encoder import encode
from models.errors import EncoderUnavailableError
from models.representations import Representations
from service import indexing
from service.app import create_worker_app
from service.building import document_encoders
from service.building.document_encoders import RemoteDocuments
from service.building.windows import estimated_tokens, windows
from service.indexing import BuildCancelledError, BuildProgress, build_collection
from service.sources.lines import SourceError


def corpus(path: Path, count: int) -> Path:
    """Documents of varied length; every one has its number in its text."""
    lines = [
        {"id": f"d{i:04d}", "text": " ".join(["tea water"] * (i * 7 % 11)) + f" {i}"} for i in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_documents_keep_their_own_representations(tmp_path: Path, tiny: Any, monkeypatch: Any) -> None:
    """Small windows and slices, so that sorting, splitting and reordering all happen."""
    monkeypatch.setattr(indexing, "WINDOW_TOKENS", 100)
    monkeypatch.setattr(indexing, "SLICE_TOKENS", 30)
    source = corpus(tmp_path / "x.jsonl", 57)
    report = build_collection(tiny, tmp_path, "many", source, token_codec="float16")
    assert (report.documents, report.snapshot, report.skipped, report.truncated) == (57, "000001", 0, 0)
    texts = [json.loads(line)["text"] for line in source.read_text().splitlines()]
    expected = encode(tiny, texts)
    assert report.tokens == int(expected.tokens.sum())
    assert verify(tmp_path, "many") == []

    snapshot = Collection.open(tmp_path, "many").snapshot()
    ids, components = snapshot.score_all(encode(tiny, ["tea 7"], "query"))
    query = encode(tiny, ["tea 7"], "query")
    assert expected.dense is not None
    assert query.dense is not None
    dense = dict(zip(ids, components[:, 0], strict=True))
    for row in range(57):
        assert dense[f"d{row:04d}"] == pytest.approx(float(expected.dense[row] @ query.dense[0]), abs=2e-3)


def test_progress_is_honest(tmp_path: Path, tiny: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(indexing, "WINDOW_TOKENS", 100)
    seen: list[BuildProgress] = []
    build_collection(tiny, tmp_path, "x", corpus(tmp_path / "x.jsonl", 40), progress=seen.append)
    assert [now.documents for now in seen] == sorted(now.documents for now in seen)
    assert [now.tokens for now in seen] == sorted(now.tokens for now in seen)
    assert {now.total for now in seen} == {40}
    assert seen[-1].publishing
    assert seen[-1].documents == 40
    assert len({now.documents for now in seen}) > 3


def test_truncation_is_reported(tmp_path: Path, tiny: Any) -> None:
    (tmp_path / "x.jsonl").write_text(
        json.dumps({"id": "a", "text": "tea " * 100}) + '\n{"id": "b", "text": "x"}'
    )
    assert build_collection(tiny, tmp_path, "x", tmp_path / "x.jsonl").truncated == 1


@pytest.mark.parametrize("content", ['{"id": "a", "text": "x"}\n{', "", "{}\n{}"])
def test_a_failed_first_build_leaves_no_collection(tmp_path: Path, tiny: Any, content: str) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(content)
    with pytest.raises(SourceError):
        build_collection(
            tiny, tmp_path / "c", "x", source, on_error="stop" if content[-1:] == "{" else "skip"
        )
    with pytest.raises(CollectionNotFoundError):
        Collection.open(tmp_path / "c", "x")
    assert list((tmp_path / "c").iterdir()) == []


def test_a_failed_rebuild_leaves_the_former_snapshot(tmp_path: Path, tiny: Any) -> None:
    build_collection(tiny, tmp_path, "x", corpus(tmp_path / "x.jsonl", 5))
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}')
    with pytest.raises(Exception, match="occurs already"):
        build_collection(tiny, tmp_path, "x", tmp_path / "bad.jsonl")
    collection = Collection.open(tmp_path, "x")
    assert (collection.current(), collection.snapshot().documents) == ("000001", 5)
    assert len(list((tmp_path / "x" / "segments").iterdir())) == 1
    report = build_collection(tiny, tmp_path, "x", corpus(tmp_path / "x.jsonl", 7))
    assert (report.snapshot, collection.snapshot().documents) == ("000002", 7)


def test_cancelling(tmp_path: Path, tiny: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(indexing, "WINDOW_TOKENS", 50)
    done: list[BuildProgress] = []
    with pytest.raises(BuildCancelledError):
        build_collection(
            tiny,
            tmp_path,
            "x",
            corpus(tmp_path / "x.jsonl", 100),
            progress=done.append,
            cancelled=lambda: len(done) > 3,
        )
    assert not (tmp_path / "x").exists()


def test_another_encoder_or_other_settings_are_refused(tmp_path: Path, tiny: Any) -> None:
    source = corpus(tmp_path / "x.jsonl", 3)
    build_collection(tiny, tmp_path, "x", source, fields={"year": "integer"})
    build_collection(tiny, tmp_path, "x", source)  # what is not asked for stays as it is
    assert Collection.open(tmp_path, "x").settings.fields == {"year": "integer"}
    with pytest.raises(CollectionExistsError, match="exists with token_codec 'int8', not 'float16'"):
        build_collection(tiny, tmp_path, "x", source, token_codec="float16")
    other = type(tiny)(seed=1)
    with pytest.raises(FingerprintMismatchError) as caught:
        build_collection(other, tmp_path, "x", source)
    assert tiny.info.fingerprint in str(caught.value)
    assert other.info.fingerprint in str(caught.value)
    assert "another name" in str(caught.value)


def test_an_encoder_that_fails_ends_the_build(tmp_path: Path, tiny: Any) -> None:
    class Failing(type(tiny)):  # type: ignore[misc]
        def encode_tokens(self, batch: Any, outputs: Any = (), adapters: Any = None) -> Representations:
            raise EncoderUnavailableError("the device has gone")

    with pytest.raises(EncoderUnavailableError, match="the device has gone"):
        build_collection(Failing(), tmp_path, "x", corpus(tmp_path / "x.jsonl", 3))
    assert not (tmp_path / "x").exists()


def test_workers_encode_with_the_adapter(tmp_path: Path, tiny: Any, make_server: Any) -> None:
    source = corpus(tmp_path / "x.jsonl", 20)
    build_collection(tiny, tmp_path, "local", source, adapter="law")
    with make_server(create=create_worker_app) as url:
        workers = RemoteDocuments([url])
        build_collection(workers, tmp_path, "remote", source, adapter="law")
        build_collection(workers, tmp_path, "base", source)
        workers.close()
    settings = [Collection.open(tmp_path, name).settings for name in ("local", "remote", "base")]
    assert [each.adapter for each in settings] == ["law", "law", None]
    assert settings[0].fingerprint == settings[1].fingerprint == tiny.adapter_info("law").fingerprint
    query = encode(tiny, ["tea"])
    one, other = (
        Collection.open(tmp_path, name).snapshot().search(query).hits for name in ("local", "remote")
    )
    assert one == other


def test_windows_hold_about_so_many_tokens() -> None:
    texts = ["a" * 30] * 10  # 12 estimated tokens each
    assert [len(window) for window in windows(texts, str, 30)] == [3, 3, 3, 1]
    assert [len(window) for window in windows(["x" * 10_000, "y"], str, 30)] == [1, 1]
    assert list(windows([], str, 30)) == []
    assert estimated_tokens("") == 2
    assert estimated_tokens("빵을 굽다") == 2 + 13 // 3
    assert estimated_tokens("\ud800" * 3) == 2 + 3


def test_building_through_workers_gives_the_same(tmp_path: Path, tiny: Any, make_server: Any) -> None:
    source = corpus(tmp_path / "x.jsonl", 30)
    build_collection(tiny, tmp_path, "local", source, token_codec="float16")
    with make_server(create=create_worker_app) as one, make_server(create=create_worker_app) as other:
        workers = RemoteDocuments([one, other])
        try:
            assert workers.info == tiny.info
            assert workers.concurrency == 4
            build_collection(workers, tmp_path, "remote", source, token_codec="float16")
        finally:
            workers.close()
    query = encode(tiny, ["tea 7"], "query")
    scores = [Collection.open(tmp_path, name).snapshot().score_all(query)[1] for name in ("local", "remote")]
    np.testing.assert_array_equal(scores[0], scores[1])


def test_an_abandoned_build_waits_for_no_worker(make_server: Any, held: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        with make_server(create=create_worker_app, encoder=held) as url:
            workers = RemoteDocuments([url])
            held.gate.clear()
            answering = pool.submit(workers.encode, ["tea"])  # the worker is at it
            with httpx.Client() as client:
                while "tercet_queue_tokens 3.0" not in client.get(f"{url}/metrics").text:
                    pass
            workers.abandon()
            with pytest.raises((CancelledError, EncoderUnavailableError)):
                answering.result(timeout=10)
            held.gate.set()
        waiting = pool.submit(workers.encode, ["tea"])  # for a worker that is gone, two minutes long
        with pytest.raises(EncoderUnavailableError):
            waiting.result(timeout=10)
        workers.close()


def test_workers_that_are_away_are_waited_for_but_not_forever(monkeypatch: Any, make_server: Any) -> None:
    monkeypatch.setattr(document_encoders, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(document_encoders, "PAUSE_SECONDS", 0.1)
    with make_server(create=create_worker_app) as url:
        workers = RemoteDocuments([url], retry_seconds=0.1)
        assert len(workers.encode(["tea"])) == 1
    with pytest.raises(EncoderUnavailableError):
        workers.encode(["tea"])
    workers.close()
    with pytest.raises(EncoderUnavailableError):
        RemoteDocuments([url])
