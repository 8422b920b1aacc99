"""Building collections with encoder workers: the same result, and patience."""

import json
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.index.collection import Collection
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models import stream
from tercet.models.encoder import encode
from tercet.models.errors import EncoderUnavailableError
from tercet.service.app import create_worker_app
from tercet.service.settings.settings import WorkerAccess
from tercet.service.workers import documents
from tercet.service.workers.documents import RemoteDocuments


def corpus(path: Path, count: int) -> Path:
    """Documents of varied length; every one has its number in its text."""
    lines = [
        {"id": f"d{i:04d}", "text": " ".join(["tea water"] * (i * 7 % 11)) + f" {i}"} for i in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_workers_encode_with_the_adapter(tmp_path: Path, tiny: Any, make_server: Any) -> None:
    source = corpus(tmp_path / "x.jsonl", 20)
    build_collection(LocalDocuments(tiny), tmp_path, "local", source, adapter="law")
    with make_server(create=create_worker_app) as url:
        workers = RemoteDocuments([url], WorkerAccess())
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


@pytest.mark.slow
def test_building_through_workers_gives_the_same(tmp_path: Path, tiny: Any, make_server: Any) -> None:
    source = corpus(tmp_path / "x.jsonl", 30)
    build_collection(LocalDocuments(tiny), tmp_path, "local", source, token_codec="float16")
    with make_server(create=create_worker_app) as one, make_server(create=create_worker_app) as other:
        workers = RemoteDocuments([one, other], WorkerAccess())
        try:
            assert workers.info == tiny.info
            build_collection(workers, tmp_path, "remote", source, token_codec="float16")
        finally:
            workers.close()
    query = encode(tiny, ["tea 7"], "query")
    scores = [Collection.open(tmp_path, name).snapshot().score_all(query)[1] for name in ("local", "remote")]
    np.testing.assert_array_equal(scores[0], scores[1])


@pytest.mark.slow
def test_workers_encode_windows(tmp_path: Path, tiny: Any, make_server: Any, monkeypatch: Any) -> None:
    """A book's windows go through workers in many groups, and give what they give here."""
    monkeypatch.setattr(stream, "WINDOW_TOKENS", 200)
    source = tmp_path / "book.jsonl"
    text = "the train leaves a station " * 400 + "green leaf"
    source.write_text(json.dumps({"id": "book", "text": text}) + '\n{"id": "note", "text": "tea"}')
    window = WindowSettings(tokens=32, overlap=8)
    build_collection(LocalDocuments(tiny), tmp_path, "local", source, window=window)
    with make_server(create=create_worker_app) as one, make_server(create=create_worker_app) as other:
        workers = RemoteDocuments([one, other], WorkerAccess())
        try:
            report = build_collection(workers, tmp_path, "remote", source, window=window)
        finally:
            workers.close()
    assert (report.documents, report.truncated) == (2, 0)
    query = encode(tiny, ["green leaf"], "query")
    local, remote = (
        Collection.open(tmp_path, name).snapshot().search(query).hits for name in ("local", "remote")
    )
    assert local == remote
    assert remote[0].window is not None
    assert text[remote[0].window.start : remote[0].window.end].endswith("green leaf")


def test_an_abandoned_build_waits_for_no_worker(make_server: Any, held: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        with make_server(create=create_worker_app, encoder=held) as url:
            workers = RemoteDocuments([url], WorkerAccess())
            held.gate.clear()
            answering = pool.submit(workers.encode, ["tea"])  # the worker is at it
            with httpx.Client() as client:
                while "tercet_queue_tokens 3.0" not in client.get(f"{url}/metrics").text:
                    pass
            workers.abandon()
            with pytest.raises((CancelledError, EncoderUnavailableError)):
                answering.result(timeout=60)
            held.gate.set()
        waiting = pool.submit(workers.encode, ["tea"])  # for a worker that is gone, two minutes long
        with pytest.raises(EncoderUnavailableError):
            waiting.result(timeout=60)
        workers.close()


@pytest.mark.slow
def test_workers_that_are_away_are_waited_for_but_not_forever(monkeypatch: Any, make_server: Any) -> None:
    monkeypatch.setattr(documents, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(documents, "PAUSE_SECONDS", 0.1)
    with make_server(create=create_worker_app) as url:
        workers = RemoteDocuments([url], WorkerAccess())
        assert len(workers.encode(["tea"])) == 1
    with pytest.raises(EncoderUnavailableError):
        workers.encode(["tea"])
    workers.close()
    with pytest.raises(EncoderUnavailableError):
        RemoteDocuments([url], WorkerAccess())
