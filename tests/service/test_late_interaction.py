"""A server with an encoder of ColBERT's kind, in PyLate's layout: answers are MaxSim of its vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tokenizers import Tokenizer as Library

pytest.importorskip("torch", reason="this encoder runs on torch: install tercet[torch]")
pytest.importorskip("transformers", reason="this encoder runs on torch: install tercet[torch]")

from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32
from tercet.service.app import create_app, create_worker_app
from tercet.service.settings.settings import Settings
from tests.conftest import DOCUMENTS, build_demo
from tests.service.conftest import real_server, serving
from tests.tiny.late_folders import write_pylate

QUERY = "hello, world wave"
TEXTS = {"wave": "a wave, in the air.", "heat": "heat. heat! and a wing", "world": "hello world, hello wing"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pylate(tmp_path_factory.mktemp("late") / "late")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return load_encoder(str(folder), "torch", device="cpu")


@pytest.fixture
def url(encoder: Encoder, tmp_path: Path) -> Iterator[str]:
    with real_server(create_app(Settings(data=tmp_path / "data"), encoder)) as url:
        yield url


def vectors(encoder: Encoder, text: str, kind: Any) -> Float32:
    found = encode(encoder, [text], kind).colbert
    assert found is not None
    return found.vectors


def maxsim(encoder: Encoder, document: str) -> float:
    similarities = vectors(encoder, QUERY, "query") @ vectors(encoder, document, "document").T
    return float(similarities.max(1).mean())


def put_texts(client: httpx.Client) -> None:
    assert client.put("/collections/late", json={"token_codec": "float16"}).status_code == 201
    documents = [{"id": id, "text": text} for id, text in TEXTS.items()]
    stored = client.put("/collections/late/documents", json={"documents": documents})
    assert stored.status_code == 200, stored.text


@pytest.mark.slow
def test_search_and_rerank_score_by_the_markers_and_the_expansion(url: str, encoder: Encoder) -> None:
    with httpx.Client(base_url=url) as client:
        put_texts(client)
        wanted = {id: maxsim(encoder, text) for id, text in TEXTS.items()}
        order = sorted(wanted, key=lambda id: -wanted[id])
        hits = client.post("/search", json={"collection": "late", "query": QUERY}).json()["hits"]
        assert [hit["id"] for hit in hits] == order
        for hit in hits:
            assert hit["scores"]["colbert"] == pytest.approx(wanted[hit["id"]], abs=2e-3)
        ranked = client.post("/rerank", json={"query": QUERY, "inputs": list(TEXTS.values())}).json()[
            "results"
        ]
        for result in ranked:
            text = list(TEXTS.values())[result["index"]]
            assert result["scores"]["colbert"] == pytest.approx(maxsim(encoder, text), abs=1e-5)


def test_explanations_name_the_tokens_of_the_vectors(url: str, folder: Path) -> None:
    """The first token of a text has a vector here, and punctuation of documents has none."""
    library = Library.from_file(str(folder / "tokenizer.json"))
    with httpx.Client(base_url=url) as client:
        put_texts(client)
        answer = client.post("/search", json={"collection": "late", "query": QUERY, "explain": True}).json()
    query = ["[CLS]", "[Q] ", "hello", ",", "world", "wave", "[SEP]", *["[MASK]"] * 5]
    for hit in answer["hits"]:
        pieces = library.encode(TEXTS[hit["id"]], add_special_tokens=False).tokens
        own = ["[CLS]", "[D] ", *(piece for piece in pieces if piece not in ",.!?"), "[SEP]"]
        assert len(own) < len(pieces) + 3
        alignment = hit["explanation"]["alignment"]
        assert [pair["query_token"] for pair in alignment] == query
        for pair in alignment:
            assert pair["document_token"] == own[pair["document_position"]]


@pytest.mark.parametrize(("kind", "tokens", "count"), [("query", 12, 12), ("document", 8, 6)])
def test_what_is_embedded_depends_on_the_type(
    url: str, encoder: Encoder, kind: str, tokens: int, count: int
) -> None:
    text = "hello wing, world."
    with httpx.Client(base_url=url) as client:
        answer = client.post("/embed", json={"inputs": text, "input_type": kind}).json()
    (found,) = answer["embeddings"]
    assert (found["tokens"], len(found["colbert"])) == (tokens, count)
    np.testing.assert_allclose(found["colbert"], vectors(encoder, text, kind), atol=1e-5)


def test_live_and_built_answer_alike(encoder: Encoder, tmp_path: Path) -> None:
    build_demo(tmp_path / "data", encoder, "built")
    with (
        real_server(create_app(Settings(data=tmp_path / "data"), encoder)) as url,
        httpx.Client(base_url=url) as client,
    ):
        assert client.put("/collections/live", json={"window": False}).status_code == 201
        documents = [{"id": each.id, "title": each.title, "text": each.text} for each in DOCUMENTS]
        assert client.put("/collections/live/documents", json={"documents": documents}).status_code == 200
        answers = [
            [
                (hit["id"], round(hit["score"], 5))
                for hit in client.post("/search", json={"collection": name, "query": QUERY}).json()["hits"]
            ]
            for name in ("live", "built")
        ]
        assert answers[0] == answers[1]
        assert len(answers[0]) == len(DOCUMENTS)


async def test_a_worker_encodes_queries_and_documents_as_here(encoder: Encoder, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "worker", batch_tokens=64, queue_tokens=4096)
    with real_server(create_worker_app(settings, encoder)) as worker:
        app = create_app(Settings(data=tmp_path / "search", encoder_urls=worker))
        async with serving(app) as client:
            for kind in ("query", "document"):
                body = {"inputs": list(TEXTS.values()), "input_type": kind}
                found = (await client.post("/embed", json=body)).json()["embeddings"]
                for text, each in zip(TEXTS.values(), found, strict=True):
                    np.testing.assert_allclose(each["colbert"], vectors(encoder, text, kind), atol=1e-5)


def test_the_settings_of_a_worker_are_those_of_the_folder(encoder: Encoder) -> None:
    written = json.loads(json.dumps(encoder.tokenizer.settings.to_json()))
    assert type(encoder.tokenizer.settings).from_json(written) == encoder.tokenizer.settings
