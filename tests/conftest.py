"""Fixtures that several packages' tests use, a tiny encoder and a small collection among them."""

from __future__ import annotations

import functools
import gc
import hashlib
import inspect
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import numpy as np
import pytest
from filelock import FileLock
from tokenizers import Tokenizer as Vocabulary
from tokenizers import models, normalizers, pre_tokenizers, processors

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.models.adapters.library import unknown_adapter
from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import AdapterDescription, Encoder, EncoderInfo, encode
from tercet.models.errors import AdapterUnusableError
from tercet.models.representations import (
    OUTPUTS,
    LexicalKind,
    Output,
    Representations,
    SparseRows,
    TokenBatch,
    TokenVectors,
    offsets_of,
)
from tercet.models.tokenizer import Tokenizer
from tests.ports import held_port

# How long one example takes says how busy the machine is.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")

ROOT = Path(__file__).resolve().parent.parent
collect_ignore = ["outside"]  # which has environments of its own: make outside
# Processes that tests start find what the tests themselves find: this tree, whichever is installed.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
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


def pytest_configure() -> None:
    """Let httpx wait while a busy machine loads what a server's first request needs."""
    inspect.signature(httpx.request).parameters["timeout"].default.read = 60.0
    # It reads certificates for every client, and for every request without one, in 24 ms.
    transports = httpx._transports.default
    transports.create_ssl_context = functools.cache(transports.create_ssl_context)
    gc.disable()  # until all is imported: it would go through what stays again and again


class TinyEncoder:
    """A real encoder without learning: fixed random vectors of tokens, averaged over neighbours.

    An adapter has other vectors. All adapters work but "worn". sides: the outputs that it has.
    """

    def __init__(
        self,
        seed: int = 0,
        max_length: int = 32,
        adapters: Sequence[str] = ADAPTERS,
        colbert: int = 4,
        sides: Sequence[Output] = OUTPUTS,
    ) -> None:
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
            name: random.normal(size=(len(VOCABULARY), 8 + colbert)).astype(np.float32)
            for name in (None, *sorted(adapters))
        }
        self._max_length = max_length
        fingerprint = self._fingerprint(None)
        dense, lexical, colbert = (
            size if side in sides else 0
            for side, size in zip(OUTPUTS, (8, len(VOCABULARY), colbert), strict=True)
        )
        self._info = EncoderInfo(
            "tiny", fingerprint, "numpy", "float32", dense, colbert, lexical, max_length, "mean"
        )

    @property
    def info(self) -> EncoderInfo:
        return self._info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def pass_tokens(self) -> int:
        return 8

    @property
    def pads(self) -> bool:
        return True

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
        ).keep(self._info.given(outputs))

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
        assert self.gate.wait(60)
        self.texts.append(len(batch))
        return super().encode_tokens(batch, outputs, adapters)


def build_demo(
    data: Path,
    encoder: Encoder,
    name: str = "demo",
    lexical: LexicalKind = "plain",
    *,
    bm25: bool = False,
) -> None:
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
        lexical=lexical,
        bm25=bm25,
    )
    collection = Collection.create(data / "collections", name, settings)
    with collection.writer() as writer:
        writer.add(DOCUMENTS, encode(encoder, [document.encoded_text for document in DOCUMENTS]))
        writer.publish()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real test collections beside the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the test collections (../shared/data) are not here")
    return folder


@pytest.fixture(scope="session")
def embedded_checkpoint() -> Path:
    """The checkpoint that ships with the project."""
    return ROOT / "checkpoints" / "minilm-m3"


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder that all processes of the run share; it is not to be changed.

    Called with the folder's name and the function that writes it, where no process has done so yet.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def make(name: str, write: Callable[[Path], object]) -> Path:
        folder = root / "made-once" / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not folder.exists():
                unfinished = folder.with_suffix(".unfinished")
                write(unfinished)
                unfinished.rename(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny() -> TinyEncoder:
    return TinyEncoder()


@pytest.fixture(scope="session")
def eight() -> TinyEncoder:
    """An encoder whose token vectors have 8 values, so that codebooks can cut them into pieces."""
    return TinyEncoder(colbert=8)


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that at the end no process waits long for another.

    Those that take turns with Ray lie as far from each other as they can: one process would wait for another.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    turns = {item.path for item in items if "ray_alone" in getattr(item, "fixturenames", ())}
    files = sorted({item.path for item in items} - turns, key=lambda path: (path not in slow, path))
    for number, path in enumerate(sorted(turns)):
        files.insert(number * len(files) // len(turns), path)
    places = {path: place for place, path in enumerate(files)}
    items.sort(key=lambda item: places[item.path])


def pytest_collection_finish() -> None:
    """What tests have imported stays to the end, so the collector of garbage need not go through it again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def dead_url() -> Iterator[str]:
    """An address at which nothing listens, and nobody else does meanwhile."""
    with held_port() as port:
        yield f"http://127.0.0.1:{port}"
