"""Tiny random checkpoints with SPLADE and with static embeddings, in the files that their libraries write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import BertConfig, BertForMaskedLM

from tercet.models.representations import Float32, SparseRows
from tests.tiny.word_pieces import BERT_POSITIONS, PIECES, word_piece_json

PLACES = 80  # of the model's vocabulary, of which the tokenizer has 71
TOKENS = len(PIECES)
WIDTH = 32
VECTOR = 12
SPARSE = "sentence_transformers.sparse_encoder.modules"
ROUTER = "sentence_transformers.base.modules.router.Router"
TRANSFORMER = "sentence_transformers.base.modules.transformer.Transformer"
SPLADE_POOLING = f"{SPARSE}.splade_pooling.SpladePooling"
TABLE = f"{SPARSE}.sparse_static_embedding.SparseStaticEmbedding"
STATIC = "sentence_transformers.models.StaticEmbedding"
NORMALIZE = "sentence_transformers.models.Normalize"


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def write_language_model(folder: Path) -> Path:
    """A two-layer BERT with its head over the vocabulary, and a tokenizer."""
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=PLACES,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=BERT_POSITIONS,
        initializer_range=0.15,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes(word_piece_json())
    return folder


def write_splade(
    folder: Path, pooling: str = "max", activation: str = "relu", most: int | None = None
) -> Path:
    """As SparseEncoder.save_pretrained of release 6 writes it."""
    write_language_model(folder)
    write_json(folder / "sentence_bert_config.json", {"transformer_task": "fill-mask"})
    write_json(
        folder / "1_SpladePooling/config.json",
        {"pooling_strategy": pooling, "activation_function": activation, "embedding_dimension": None},
    )
    write_json(
        folder / "modules.json",
        [
            {"idx": 0, "name": "0", "path": "", "type": TRANSFORMER},
            {"idx": 1, "name": "1", "path": "1_SpladePooling", "type": SPLADE_POOLING},
        ],
    )
    described = {"model_type": "SparseEncoder", "prompts": {"query": "", "document": ""}}
    write_json(
        folder / "config_sentence_transformers.json",
        described if most is None else {**described, "max_active_dims": most},
    )
    return folder


def query_weights() -> Float32:
    """A weight for each token of the vocabulary, of a few it is 0."""
    weights = np.random.default_rng(11).uniform(0.5, 4, TOKENS).astype(np.float32)
    weights[::9] = 0
    return weights


def write_inference_free(folder: Path, transformer: str = "") -> Path:
    """As the OpenSearch models are laid out; transformer: a folder for it, as release 6 saves it."""
    write_language_model(folder / transformer)
    if transformer:
        write_json(folder / transformer / "sentence_bert_config.json", {"transformer_task": "fill-mask"})
    table, pooling = "query_0_SparseStaticEmbedding", "document_1_SpladePooling"
    kind = TRANSFORMER if transformer else f"{SPARSE}.mlm_transformer.MLMTransformer"
    write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": ROUTER}])
    write_json(folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder"})
    write_json(
        folder / "router_config.json",
        {
            "types": {table: TABLE, transformer: kind, pooling: SPLADE_POOLING},
            "structure": {"query": [table], "document": [transformer, pooling]},
            "parameters": {"default_route": "document", "allow_empty_key": True},
        },
    )
    write_json(
        folder / pooling / "config.json", {"pooling_strategy": "max", "activation_function": "log1p_relu"}
    )
    write_json(folder / table / "config.json", {"frozen": True})
    save_file({"weight": query_weights()}, folder / table / "model.safetensors")
    (folder / table / "tokenizer.json").write_bytes(word_piece_json())
    return folder


def static_vectors() -> Float32:
    return np.random.default_rng(13).normal(size=(TOKENS, VECTOR)).astype(np.float32)


def write_model2vec(folder: Path, **config: Any) -> Path:
    """As Model2Vec writes a model."""
    write_json(folder / "config.json", {"model_type": "model2vec", "normalize": True, **config})
    save_file({"embeddings": static_vectors()}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(word_piece_json())
    modules = [
        {"idx": 0, "name": "0", "path": ".", "type": STATIC},
        {"idx": 1, "name": "1", "path": "1_Normalize", "type": NORMALIZE},
    ]
    write_json(folder / "modules.json", modules)
    return folder


def write_static(folder: Path) -> Path:
    """A StaticEmbedding of sentence-transformers, whose tokenizer cuts texts at 8 tokens."""
    place = folder / "0_StaticEmbedding"
    write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": place.name, "type": STATIC}])
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "hello "}})
    place.mkdir()
    (place / "tokenizer.json").write_bytes(word_piece_json())
    save_file({"embedding.weight": static_vectors()}, place / "model.safetensors")
    return folder


def dense_rows(rows: SparseRows, size: int = PLACES) -> Float32:
    """Sparse rows with all their zeros, float32[B, size]."""
    dense = np.zeros((len(rows), size), np.float32)
    for row in range(len(rows)):
        token_ids, weights = rows.row(row)
        dense[row, token_ids] = weights
    return dense
