"""Tiny checkpoints: a random BERT made here, the golden XLM-RoBERTa, and their exported graphs."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tercet.models.graphs.record import FOLDER
from tests.tiny.word_pieces import BERT_POSITIONS, BERT_WIDTH, PIECES, word_piece_json

torch = pytest.importorskip("torch", reason="these tests compare with torch: install tercet[torch]")
pytest.importorskip("transformers", reason="these tests compare with torch: install tercet[torch]")
pytest.importorskip("onnxscript", reason="the export needs onnxscript: install tercet[torch]")

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

GOLDEN = Path(__file__).resolve().parent / "golden"
BERT_COLBERT = 16


def write_bert(folder: Path, positions: int = BERT_POSITIONS, **settings: object) -> Path:
    """A random two-layer BERT with heads.safetensors and tercet.json; weights tell texts apart."""
    from transformers import BertConfig, BertModel

    from tercet.models.weights.head_weights import HeadWeights, LinearHead, write_heads

    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_bytes(word_piece_json())
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=BERT_WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * BERT_WIDTH,
        max_position_embeddings=positions,
        initializer_range=0.15,
    )
    torch.manual_seed(3)
    BertModel(config).eval().save_pretrained(folder)
    random = np.random.default_rng(5)
    write_heads(
        folder,
        HeadWeights(
            LinearHead(
                random.normal(0, 0.2, (1, BERT_WIDTH)).astype(np.float32), np.array([0.1], np.float32)
            ),
            LinearHead(
                random.normal(0, 0.2, (BERT_COLBERT, BERT_WIDTH)).astype(np.float32),
                random.normal(0, 0.2, BERT_COLBERT).astype(np.float32),
            ),
        ),
    )
    (folder / "tercet.json").write_text(json.dumps({"pooling": "mean", **settings}))
    return folder


@pytest.fixture(scope="session", autouse=True)
def operators_read_once() -> Iterator[None]:
    """torch reads the sources of its exporter's operators for each graph, a seventh of a tiny one's time."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ONNXRegistry, "from_torchlib", staticmethod(functools.cache(ONNXRegistry.from_torchlib))
        )
        yield


@pytest.fixture(scope="session")
def golden() -> Path:
    """Outputs of FlagEmbedding 1.4.2 on a tiny random checkpoint, made by tests/models/make_golden.py."""
    return GOLDEN


@pytest.fixture(scope="session")
def bert(made_once: MadeOnce) -> Path:
    """A tiny BERT checkpoint: mean pooling, ColBERT dimension 16, 48 positions."""
    return made_once("checkpoints/bert", write_bert)


@pytest.fixture(scope="session")
def bert_mcls(made_once: MadeOnce) -> Path:
    """The same BERT with a CLS at every eighth position."""
    return made_once("checkpoints/bert-mcls", lambda folder: write_bert(folder, mcls_every=8))


@pytest.fixture
def bert_copy(bert: Path, tmp_path: Path) -> Path:
    """A copy of the tiny BERT that a test may change."""
    return Path(shutil.copytree(bert, tmp_path / "bert"))


@contextmanager
def graph_in(folder: Path) -> Iterator[None]:
    """Exports take the graph of the same weights from a folder: to trace it takes nearly all their time."""

    def copy_graph(_: object, path: Path) -> None:
        for file in (folder / FOLDER).glob("*.onnx"):
            shutil.copy(file, path.parent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tercet.models.export_onnx.write_graph", copy_graph)
        yield


def export_both(checkpoint: Path, folder: Path, calibration: Sequence[str] = ()) -> None:
    """Exports a checkpoint in float32 and in int8, of one trace."""
    from tercet.models.export_onnx import export

    export(checkpoint, folder, int8=False, calibration=calibration)
    with graph_in(folder):
        export(checkpoint, folder, int8=True, calibration=calibration)


def _exported(made_once: MadeOnce, checkpoint: Path, name: str) -> Path:
    return made_once(f"exported/{name}", lambda folder: export_both(checkpoint, folder))


@pytest.fixture(scope="session")
def bert_exported(made_once: MadeOnce, bert: Path) -> Path:
    """The tiny BERT exported, float32 and int8."""
    return _exported(made_once, bert, "bert")


@pytest.fixture(scope="session")
def xlmr_exported(made_once: MadeOnce, golden: Path) -> Path:
    """The golden XLM-RoBERTa exported, float32 and int8."""
    return _exported(made_once, golden / "checkpoint", "xlmr")


@pytest.fixture(scope="session")
def mcls_exported(made_once: MadeOnce, bert_mcls: Path) -> Path:
    """The tiny BERT with MCLS exported, float32 and int8."""
    return _exported(made_once, bert_mcls, "bert-mcls")


@pytest.fixture(scope="session")
def long_bert(made_once: MadeOnce) -> Path:
    """The tiny BERT with 8,192 positions, and its float32 graph."""
    from tercet.models.export_onnx import export

    def write(folder: Path) -> None:
        export(write_bert(folder, 8192), folder, int8=False)

    return made_once("checkpoints/long-bert", write)


@pytest.fixture
def exported_copy(bert_exported: Path, tmp_path: Path) -> Path:
    """A copy of the exported tiny BERT that a test may damage."""
    return Path(shutil.copytree(bert_exported, tmp_path / "exported"))


@pytest.fixture(scope="session")
def tokenizer_json() -> bytes:
    """The tokenizer.json of the tiny BERT."""
    return word_piece_json()
