"""Files of a checkpoint, each as a target of changes: read and used as an encoder does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tercet.models.checkpoint import EncodingSettings, hidden_size, read_settings
from tercet.models.errors import ModelError
from tercet.models.fingerprint import json_digest
from tercet.models.graphs.record import read_export
from tercet.models.graphs.tables import TextRows
from tercet.models.native.native_graph import NativeGraph
from tercet.models.static_encoder import StaticEncoder
from tercet.models.tokenizer import Tokenizer
from tercet.models.weights.head_weights import read_heads
from tests.strangers.children import Target
from tests.strangers.mutations import Mutation, changed_header, changed_json, changed_message
from tests.tiny.vocabularies import byte_pairs, unigrams
from tests.tiny.word_pieces import word_piece_json

NAMED = (ModelError,)
TEXTS = ["hello world, tea 東京 \U0010ffff", "", "a" * 3_000, "\ud800 ##a [CLS] </s>"]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VECTORS = 8


def tokenizer_targets(folder: Path) -> list[Target]:
    """A tokenizer.json of three kinds."""
    contents = {
        "word pieces": word_piece_json(),
        "unigrams": unigrams(SPECIAL, "[CLS]", "[SEP]", "[UNK]").to_str().encode(),
        "byte pairs": byte_pairs(SPECIAL, "[CLS]", "[SEP]", "[UNK]").to_str().encode(),
    }
    targets = []
    for kind, content in contents.items():
        own = folder / kind
        own.mkdir(parents=True)
        (own / "config.json").write_text('{"model_type": "bert", "vocab_size": 400}')
        file = own / "tokenizer.json"
        file.write_bytes(content)
        targets.append(
            _target(f"tokenizer of {kind}", own, file, changed_json, lambda own=own: _tokenize(own))
        )
    return targets


def _tokenize(folder: Path) -> object:
    tokenizer = Tokenizer.load(folder, EncodingSettings(max_length=32))
    batch = tokenizer.tokenize(TEXTS)
    assert batch.token_ids.max(initial=0) < tokenizer.vocabulary_size
    tokenizer.spans(TEXTS[0])
    return tokenizer.text_of(batch.token_ids[:20].tolist(), special=True)


def settings_targets(folder: Path) -> list[Target]:
    """Files of settings of a folder that has all of them."""
    contents: dict[str, Any] = {
        "tercet.json": {
            "pooling": "mean",
            "max_length": 64,
            "query_instruction": "query: ",
            "splade": {"pooling": "max", "activation": "relu", "max_terms": 5},
            "late_interaction": {
                "query_marker": "[Q]",
                "query_length": 8,
                "skiplist": ["."],
                "skiplist_types": ["query"],
            },
            "matryoshka_dimensions": [8, 4],
            "lexical": "plain",
            "tasks": None,
        },
        "config.json": {
            "model_type": "xlm-roberta",
            "max_position_embeddings": 100,
            "pad_token_id": 1,
            "hidden_size": 32,
            "vocab_size": 70,
            "architectures": ["XLMRobertaModel"],
        },
        "tokenizer_config.json": {
            "model_max_length": 64,
            "do_lower_case": True,
            "mask_token": {"content": "[MASK]"},
        },
        "modules.json": [
            {"idx": 0, "type": "sentence_transformers.models.Transformer", "path": ""},
            {"idx": 1, "type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
            {"idx": 2, "type": "sentence_transformers.models.Dense", "path": "2_Dense"},
        ],
        "1_Pooling/config.json": {
            "pooling_mode_cls_token": True,
            "pooling_mode_mean_tokens": False,
            "include_prompt": True,
        },
        "config_sentence_transformers.json": {
            "prompts": {"query": "q: ", "document": ""},
            "default_prompt_name": None,
            "similarity_fn_name": "dot",
        },
        "sentence_bert_config.json": {"max_seq_length": 40, "do_lower_case": False},
        "onnx/export.json": {
            "format": 1,
            "weights": "a",
            "heads": "b",
            "pooling": "mean",
            "mcls_every": None,
            "graphs": {"int8": {"file": "g.onnx", "files": {"g.onnx": "c"}, "differences": {"dense": 0.1}}},
        },
    }
    targets = []
    for name in contents:
        own = folder / name.replace("/", "-")
        for other, values in contents.items():
            (own / other).parent.mkdir(parents=True, exist_ok=True)
            (own / other).write_text(json.dumps(values))
        targets.append(_target(name, own, own / name, changed_json, lambda own=own: _settings(own)))
    return targets


def _settings(folder: Path) -> object:
    settings = read_settings(folder)
    hidden_size(folder)
    read_export(folder)
    return json_digest(settings.of_representations)


def weights_targets(folder: Path) -> list[Target]:
    """Files of safetensors: heads, and the vectors of static embeddings."""
    random = np.random.default_rng(0)
    heads = folder / "heads"
    heads.mkdir(parents=True)
    arrays = {
        "sparse.weight": random.normal(size=(1, VECTORS)),
        "sparse.bias": np.zeros(1),
        "dense.0.weight": random.normal(size=(4, VECTORS)),
        "dense.0.tanh": np.zeros(0),
        "tokens.0.weight": random.normal(size=(4, VECTORS)),
    }
    file = heads / "heads.safetensors"
    save_file({name: array.astype(np.float32) for name, array in arrays.items()}, file)
    static = folder / "static"
    static.mkdir()
    (static / "config.json").write_text('{"model_type": "model2vec", "max_length": 32}')
    (static / "tokenizer.json").write_bytes(word_piece_json())
    rows = json.loads(word_piece_json())["model"]["vocab"]
    vectors = static / "model.safetensors"
    places = np.arange(len(rows), dtype=np.int64) % 9
    save_file(
        {
            "embeddings": random.normal(size=(9, VECTORS)).astype(np.float16),
            "mapping": places,
            "weights": np.ones(len(rows), np.float64),
        },
        vectors,
    )
    return [
        _target("heads", heads, file, changed_header, lambda: read_heads(heads, VECTORS)),
        _target("static vectors", static, vectors, changed_header, lambda: _static(static)),
        _target("static settings", static, static / "config.json", changed_json, lambda: _static(static)),
    ]


def _static(folder: Path) -> object:
    encoder = StaticEncoder(folder, "static")
    return encoder.encode_tokens(encoder.tokenizer.tokenize(TEXTS))


def graph_targets(folder: Path, exported: Path) -> list[Target]:
    """The int8 graph of an exported checkpoint, as our own kernels run it."""
    own = Path(shutil.copytree(exported, folder / "graph"))
    tokenizer = Tokenizer.load(own, read_settings(own))
    batch = tokenizer.tokenize([text[:40] for text in TEXTS])
    heads = read_heads(own, hidden_size(own))
    rows = TextRows.of(json.loads((own / "config.json").read_text()), tokenizer)
    graph = own / "onnx" / "model_int8.onnx"

    def run() -> object:
        rows.require(graph)
        opened = NativeGraph(graph, tokenizer.settings, heads, tokenizer.pad_id, 1)
        return opened.forward(*batch.padded(tokenizer.pad_id), ("dense", "sparse", "colbert"))

    return [_target("graph", own, graph, changed_message, run)]


def _target(name: str, folder: Path, file: Path, mutation: Mutation, read: Callable[[], object]) -> Target:
    return Target(name, folder, file, mutation, read, NAMED)
