"""SPLADE, inference-free and static encoders behind a real server, from `/embed` to a search."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.evaluation.beir import read_dataset
from tercet.evaluation.run import evaluate
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.service.app import create_app, create_worker_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server
from tests.tiny.sparse_folders import (
    PLACES,
    VECTOR,
    write_inference_free,
    write_model2vec,
    write_splade,
)

pytestmark = pytest.mark.slow

MadeOnce = Callable[[str, Callable[[Path], object]], Path]
TEXTS = {"sky": "wing wing air", "greeting": "hello world", "heat": "heat wave, heat air", "none": ""}
WRITERS = {"splade": write_splade, "free": write_inference_free, "static": write_model2vec}
SIDES = {"splade": "sparse", "free": "sparse", "static": "dense"}
STORED = {"sparse": 1e-4, "dense": 1e-3}  # how far a stored document may be: its vector is kept in float16
KINDS = [(kind, engine) for kind in WRITERS for engine in ("torch", "onnx")]


@pytest.fixture(params=KINDS, ids=lambda pair: "-".join(pair))
def served(request: pytest.FixtureRequest, made_once: MadeOnce) -> tuple[str, Path, str]:
    """Kind, folder and engine; what the onnx engine needs is exported as int8 and float32."""
    kind, engine = request.param
    source = made_once(f"checkpoints/served-{kind}", WRITERS[kind])
    if engine == "torch" or kind == "static":
        return kind, source, engine

    def write(folder: Path) -> None:
        from tercet.models.export_onnx import export

        export(source, folder, int8=False)

    return kind, made_once(f"exported/served-{kind}", write), engine


def post(client: httpx.Client, path: str, body: Any) -> Any:
    response = client.post(path, json=body)
    assert response.status_code in (200, 201, 202), response.text
    return response.json()


def score_by_hand(encoder: Encoder, query: str, text: str) -> float:
    """The product of both representations, with all their zeros."""
    sides = []
    for found in (encode(encoder, [query], "query"), encode(encoder, [text])):
        row = np.zeros(max(PLACES, VECTOR))
        if found.dense is not None:
            row[: found.dense.shape[1]] = found.dense[0]
        if found.sparse is not None:
            row[found.sparse.token_ids] = found.sparse.weights
        sides.append(row)
    return float(sides[0] @ sides[1])


def test_from_embed_to_search(served: tuple[str, Path, str], tmp_path: Path) -> None:
    kind, folder, engine = served
    side = SIDES[kind]
    encoder = load_encoder(str(folder), engine, device="cpu")  # type: ignore[arg-type]
    sources = tmp_path / "sources"
    sources.mkdir()
    lines = [json.dumps({"id": id, "text": text}) for id, text in TEXTS.items()]
    (sources / "texts.jsonl").write_text("\n".join(lines))
    settings = Settings(data=tmp_path, checkpoint=str(folder), engine=engine, device="cpu")
    with real_server(create_app(settings)) as url, httpx.Client(base_url=url, timeout=60) as client:
        described = client.get("/info").json()
        names = {"torch": "torch", "onnx": "onnxruntime"}
        assert described["encoder"]["engine"] == ("static" if kind == "static" else names[engine])
        assert ("splade" in described["encoding_settings"]) == (kind != "static")

        body = {"inputs": ["wing air", "hello"], "input_type": "query"}
        embedded = post(client, "/embed", body)["embeddings"]
        assert set(embedded[0]) == {side, "tokens", "truncated"}
        expected = encode(encoder, body["inputs"], "query")  # type: ignore[arg-type]
        for row, found in enumerate(embedded):
            if expected.sparse is not None:
                ids, weights = expected.sparse.row(row)
                assert found["sparse"]["token_ids"] == ids.tolist()
                np.testing.assert_allclose(found["sparse"]["weights"], weights, atol=1e-4)
            else:
                assert expected.dense is not None
                np.testing.assert_allclose(found["dense"], expected.dense[row], atol=1e-4)

        assert client.put("/collections/live", json={}).status_code == 201
        collection = client.get("/collections/live").json()
        assert collection["lexical"] == "plain", "a table's weights are not multiplied by idf again"
        documents = [{"id": id, "text": text} for id, text in TEXTS.items()]
        assert client.put("/collections/live/documents", json={"documents": documents}).status_code == 200
        assert client.put("/collections/built", json={}).status_code == 201
        job = post(client, "/collections/built/jobs", {"source": "texts.jsonl", "mode": "replace"})
        while job["state"] in ("queued", "running"):
            job = client.get(f"/jobs/{job['id']}").json()
        assert job["state"] == "succeeded", job

        answers = {}
        for name in ("live", "built"):
            asked = {"collection": name, "query": "wing air", "explain": True, "highlight": True}
            answers[name] = post(client, "/search", asked)["hits"]
            for hit in answers[name]:
                by_hand = 0 if hit["id"] == "none" else score_by_hand(encoder, "wing air", TEXTS[hit["id"]])
                assert hit["score"] == hit["scores"][side] == pytest.approx(by_hand, abs=STORED[side])
        scores = [{hit["id"]: hit["score"] for hit in hits} for hits in answers.values()]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)
        if kind == "free":
            assert answers["live"][0]["explanation"]["terms"], "terms that both have"
        if kind == "splade":
            own = set(encoder.tokenizer.tokenize(["wing air"]).token_ids.tolist())
            terms = {term["token_id"] for term in answers["live"][0]["explanation"]["terms"]}
            assert terms - own, "also those that the query does not say"

        ranked = post(client, "/rerank", {"query": "wing air", "inputs": list(TEXTS.values())[:3]})["results"]
        by_hand = [score_by_hand(encoder, "wing air", text) for text in list(TEXTS.values())[:3]]
        assert [one["index"] for one in ranked] == np.argsort(by_hand)[::-1].tolist()
        assert ranked[0]["score"] == pytest.approx(max(by_hand), abs=1e-4)

        unknown = client.post("/search", json={"collection": "live", "query": "漢"})
        assert unknown.status_code == 200, "a word that the vocabulary does not have finds what it finds"


def test_a_worker_serves_them(served: tuple[str, Path, str], tmp_path: Path) -> None:
    """A server that has no checkpoint itself: its tokenizer and the sizes come from the worker."""
    kind, folder, engine = served
    side = SIDES[kind]
    encoder = load_encoder(str(folder), engine, device="cpu")  # type: ignore[arg-type]
    with ExitStack() as stack:
        worker = create_worker_app(Settings(data=tmp_path / "worker"), encoder)
        url = stack.enter_context(real_server(worker))
        app = create_app(Settings(data=tmp_path / "search", encoder_urls=url))
        client = httpx.Client(base_url=stack.enter_context(real_server(app)), timeout=60)
        stack.enter_context(client)
        assert client.put("/collections/live", json={}).status_code == 201
        documents = [{"id": id, "text": text} for id, text in TEXTS.items()]
        assert client.put("/collections/live/documents", json={"documents": documents}).status_code == 200
        for hit in post(client, "/search", {"collection": "live", "query": "wing air"})["hits"]:
            by_hand = 0 if hit["id"] == "none" else score_by_hand(encoder, "wing air", TEXTS[hit["id"]])
            assert hit["scores"][side] == pytest.approx(by_hand, abs=STORED[side])


def test_they_are_evaluated(served: tuple[str, Path, str], tmp_path: Path) -> None:
    kind, folder, engine = served
    encoder = load_encoder(str(folder), engine, device="cpu")  # type: ignore[arg-type]
    texts = {id: text for id, text in TEXTS.items() if text}
    lines = [json.dumps({"_id": id, "text": text}) for id, text in texts.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "wing air"}')
    best = max(texts, key=lambda id: score_by_hand(encoder, "wing air", texts[id]))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\nq\t{best}\t1\n")
    for exhaustive in (False, True):
        [report] = evaluate([read_dataset(tmp_path, "test")], encoder, exhaustive=exhaustive)
        results = report["results"]
        assert set(results) == {SIDES[kind], "sum", "bm25"}
        assert results[SIDES[kind]]["RR@10"] == results["sum"]["RR@10"] == 1
