"""A tiny encoder, a small collection, and servers over them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI
from tokenizers import Tokenizer as Vocabulary
from tokenizers import models, normalizers, pre_tokenizers, processors

from index.candidates import Document
from index.collection import Collection
from index.manifest import CollectionSettings
from models.checkpoint import EncodingSettings
from models.encoder import EncoderInfo, encode
from models.representations import (
    OUTPUTS,
    Output,
    Representations,
    SparseRows,
    TokenBatch,
    TokenVectors,
    offsets_of,
)
from models.tokenizer import Tokenizer
from service.app import create_app
from service.encoding import LocalEncoding
from service.settings import Settings

WORDS = [
    "tea",
    "water",
    "hot",
    "brew",
    "train",
    "rail",
    "station",
    "green",
    "leaf",
    "black",
    "steam",
    "the",
    "a",
]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghijklmnopqrstuvwxyz0123456789"]
DOCUMENTS = [
    Document("tea", "brew tea with hot water", "green tea", {"year": 2001, "kind": "drink"}),
    Document("rail", "the train leaves the station", None, {"year": 1830, "kind": "travel"}),
    Document("steam/engine", "steam moves the train", "steam", {"year": 1804}),
    Document("leaf", "a green leaf", None, {"kind": "plant", "note": {"nested": [1, None]}}),
    Document("black", "black tea is a leaf", "블랙 티 🍵", {}),
]


class TinyEncoder:
    """A real encoder without learning: fixed random vectors of tokens, averaged over neighbours."""

    def __init__(self, seed: int = 0, max_length: int = 32) -> None:
        vocabulary = Vocabulary(
            models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
        )
        vocabulary.normalizer = normalizers.Lowercase()
        vocabulary.pre_tokenizer = pre_tokenizers.Whitespace()
        vocabulary.add_special_tokens(VOCABULARY[:5])
        vocabulary.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        settings = EncodingSettings(pooling="mean", max_length=max_length)
        self._tokenizer = Tokenizer.from_bytes(vocabulary.to_str().encode(), settings)
        random = np.random.default_rng(seed)
        self._dense = random.normal(size=(len(VOCABULARY), 8)).astype(np.float32)
        self._colbert = random.normal(size=(len(VOCABULARY), 4)).astype(np.float32)
        self._weights = random.uniform(0.1, 1, len(VOCABULARY)).astype(np.float32)
        fingerprint = hashlib.sha256(self._dense.tobytes() + str(max_length).encode()).hexdigest()
        self._info = EncoderInfo(
            "tiny", fingerprint, "numpy", "float32", 8, 4, len(VOCABULARY), max_length, "mean"
        )

    @property
    def info(self) -> EncoderInfo:
        return self._info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def encode_tokens(self, batch: TokenBatch, outputs: Sequence[Output] = OUTPUTS) -> Representations:
        dense = np.stack([self._dense[self._ids(batch, row)].mean(axis=0) for row in range(len(batch))])
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
        terms = [np.unique(self._ids(batch, row)[1:-1]) for row in range(len(batch))]
        terms = [ids[~np.isin(ids, list(self._tokenizer.special_ids))].astype(np.int32) for ids in terms]
        vectors = [self._colbert[self._ids(batch, row)[1:]] for row in range(len(batch))]
        packed = np.concatenate(vectors)
        packed /= np.linalg.norm(packed, axis=1, keepdims=True)
        token_ids = np.concatenate(terms)
        return Representations(
            batch.lengths,
            batch.truncated,
            dense,
            SparseRows(
                offsets_of(np.array([len(ids) for ids in terms])), token_ids, self._weights[token_ids]
            ),
            TokenVectors(packed, offsets_of(np.array([len(rows) for rows in vectors]))),
        ).keep(outputs)

    def _ids(self, batch: TokenBatch, row: int) -> Any:
        return batch.token_ids[batch.offsets[row] : batch.offsets[row + 1]]


def build_demo(data: Path, encoder: TinyEncoder, name: str = "demo") -> None:
    """Writes a collection of DOCUMENTS below a data root."""
    info = encoder.info
    settings = CollectionSettings(
        name=name,
        encoder=info.name,
        fingerprint=info.fingerprint,
        dense_dimension=info.dense_dimension,
        colbert_dimension=info.colbert_dimension,
        vocabulary_size=info.vocabulary_size,
        fields={"year": "integer", "kind": "keyword"},
    )
    collection = Collection.create(data / "collections", name, settings)
    with collection.writer() as writer:
        writer.add(DOCUMENTS, encode(encoder, [document.encoded_text for document in DOCUMENTS]))
        writer.publish()


def local_encoding(encoder: TinyEncoder, **options: Any) -> LocalEncoding:
    """The encoder behind a batcher."""
    return LocalEncoding(encoder, **{"batch_tokens": 64, "queue_tokens": 4096, **options})


@asynccontextmanager
async def serving(app: FastAPI, headers: dict[str, str] | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that runs in this event loop and is ready."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://test",
            headers=headers,
        ) as client,
    ):
        while (await client.get("/ready")).status_code != 200:
            pass
        yield client


@contextmanager
def real_server(app: FastAPI) -> Iterator[str]:
    """The address of an application behind uvicorn on a free port, in a thread."""
    server = uvicorn.Server(
        uvicorn.Config(
            app, host="127.0.0.1", port=0, log_config=None, access_log=False, timeout_graceful_shutdown=5
        )
    )
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        url = f"http://{host}:{port}"
        with httpx.Client() as client:
            while client.get(f"{url}/ready").status_code != 200:
                pass
        yield url
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def tiny() -> TinyEncoder:
    return TinyEncoder()


@pytest.fixture
def data(tmp_path: Path, tiny: TinyEncoder) -> Path:
    """A data root with the collection `demo`."""
    build_demo(tmp_path, tiny)
    return tmp_path


MakeClient = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def make_client(data: Path, tiny: TinyEncoder) -> MakeClient:
    """Makes a client of a search server over `data`, with these settings."""

    def make(
        headers: dict[str, str] | None = None, encoder: TinyEncoder = tiny, **settings: Any
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return serving(create_app(Settings(data=data, **settings), local_encoding(encoder)), headers)

    return make


@pytest.fixture
async def client(make_client: MakeClient) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an open search server."""
    async with make_client() as client:
        yield client
