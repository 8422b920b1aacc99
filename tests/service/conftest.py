"""A tiny encoder, a small collection, and servers over them."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from tokenizers import Tokenizer as Vocabulary
from tokenizers import models, normalizers, pre_tokenizers, processors

from index.candidates import Document
from index.collection import Collection
from index.manifest import CollectionSettings
from models.adapters.library import unknown_adapter
from models.checkpoint import EncodingSettings
from models.encoder import AdapterDescription, Encoder, EncoderInfo, encode
from models.errors import AdapterUnusableError
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
from service.app import create_app, server_for
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


ADAPTERS = ("law", "tea")


class TinyEncoder:
    """A real encoder without learning: fixed random vectors of tokens, averaged over neighbours.

    An adapter has other vectors. All adapters work but "worn".
    """

    def __init__(self, seed: int = 0, max_length: int = 32, adapters: Sequence[str] = ADAPTERS) -> None:
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
        self._weights = random.uniform(0.1, 1, len(VOCABULARY)).astype(np.float32)
        self._tables = {
            name: random.normal(size=(len(VOCABULARY), 8 + 4)).astype(np.float32)
            for name in (None, *sorted(adapters))
        }
        self._max_length = max_length
        fingerprint = self._fingerprint(None)
        self._info = EncoderInfo(
            "tiny", fingerprint, "numpy", "float32", 8, 4, len(VOCABULARY), max_length, "mean"
        )

    @property
    def info(self) -> EncoderInfo:
        return self._info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def adapter_info(self, name: str) -> EncoderInfo:
        if name not in self._tables:
            raise unknown_adapter(name, tuple(filter(None, self._tables)))
        if name == "worn":
            raise AdapterUnusableError("/secret/worn/adapter.json is missing")
        return replace(self._info, fingerprint=self._fingerprint(name), adapter=name)

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        return name

    def describe_adapters(self) -> list[AdapterDescription]:
        return [
            AdapterDescription(name, "lora", self.adapter_info(name).fingerprint, f"For {name}.")
            if name != "worn"
            else AdapterDescription(name, None, None, problem="it is damaged")
            for name in self._tables
            if name is not None
        ]

    def _fingerprint(self, adapter: str | None) -> str:
        table = self._tables[adapter]
        return hashlib.sha256(table.tobytes() + str(self._max_length).encode()).hexdigest()

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | None] | None = None,
    ) -> Representations:
        tables = [self._tables[name] for name in adapters or [None] * len(batch)]
        dense = np.stack([tables[row][self._ids(batch, row), :8].mean(axis=0) for row in range(len(batch))])
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
        terms = [np.unique(self._ids(batch, row)[1:-1]) for row in range(len(batch))]
        terms = [ids[~np.isin(ids, list(self._tokenizer.special_ids))].astype(np.int32) for ids in terms]
        vectors = [tables[row][self._ids(batch, row)[1:], 8:] for row in range(len(batch))]
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


class HeldEncoder(TinyEncoder):
    """Each batch waits until `gate` is set, as it is at first; `texts` counts those of each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.texts: list[int] = []

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | None] | None = None,
    ) -> Representations:
        assert self.gate.wait(20)
        self.texts.append(len(batch))
        return super().encode_tokens(batch, outputs, adapters)


def build_demo(data: Path, encoder: Encoder, name: str = "demo") -> None:
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
        adapter=info.adapter,
    )
    collection = Collection.create(data / "collections", name, settings)
    with collection.writer() as writer:
        writer.add(DOCUMENTS, encode(encoder, [document.encoded_text for document in DOCUMENTS]))
        writer.publish()


def local_encoding(encoder: TinyEncoder, settings: Settings) -> LocalEncoding:
    """The encoder behind a batcher."""
    return LocalEncoding(encoder, batch_tokens=settings.batch_tokens, queue_tokens=settings.queue_tokens)


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
    """The address of an application behind a real server on a free port, in a thread."""
    server = server_for(app, Settings(port=0, shutdown_seconds=5))
    thread = threading.Thread(target=server.run, daemon=True)
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
def held() -> HeldEncoder:
    """An encoder that can be made to wait."""
    return HeldEncoder()


@pytest.fixture(scope="session")
def built_data(tmp_path_factory: pytest.TempPathFactory, tiny: TinyEncoder) -> Path:
    """A data root with the collection `demo`, not to be changed."""
    root = tmp_path_factory.mktemp("data")
    build_demo(root, tiny)
    return root


@pytest.fixture
def data(tmp_path: Path, built_data: Path) -> Path:
    """A data root with the collection `demo`, of this test alone."""
    return Path(shutil.copytree(built_data, tmp_path / "data"))


@pytest.fixture
def build() -> Callable[..., None]:
    """Writes a collection of DOCUMENTS with an encoder: `build_demo`."""
    return build_demo


MakeApp = Callable[..., FastAPI]
MakeClient = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]
MakeServer = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def make_app(data: Path, tiny: TinyEncoder) -> MakeApp:
    """Makes a search server over `data`, or an encoder worker, with these settings."""

    def make(
        encoder: TinyEncoder = tiny, create: Callable[..., FastAPI] = create_app, **settings: Any
    ) -> FastAPI:
        complete = Settings(**{"data": data, "batch_tokens": 64, "queue_tokens": 4096, **settings})
        return create(complete, local_encoding(encoder, complete))

    return make


@pytest.fixture
def make_client(make_app: MakeApp) -> MakeClient:
    """Makes a client of an application in the test's event loop; options as for `make_app`."""

    def make(
        headers: dict[str, str] | None = None, **options: Any
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return serving(make_app(**options), headers)

    return make


@pytest.fixture
def make_server(make_app: MakeApp) -> MakeServer:
    """Makes a real server on a free port and gives its address; options as for `make_app`."""

    def make(**options: Any) -> AbstractContextManager[str]:
        return real_server(make_app(**options))

    return make


@pytest.fixture
def serve() -> Callable[[FastAPI], AbstractContextManager[str]]:
    """Serves an application on a free port and gives its address."""
    return real_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, built_data: Path, tiny: TinyEncoder) -> Iterator[str]:
    """The address of a real server that the tests of one module share."""
    copy = shutil.copytree(built_data, tmp_path_factory.mktemp("server") / "data")
    settings = Settings(data=copy, batch_tokens=64, queue_tokens=4096)
    with real_server(create_app(settings, local_encoding(tiny, settings))) as url:
        yield url


@pytest.fixture
async def client(make_client: MakeClient) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an open search server."""
    async with make_client() as client:
        yield client
