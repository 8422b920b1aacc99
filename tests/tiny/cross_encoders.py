"""Tiny cross-encoders with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.tiny.word_pieces import PIECES, word_piece_json

if TYPE_CHECKING:
    import torch


def classifier(kind: str, vocabulary: int = 45, positions: int = 32, seed: int = 7) -> torch.nn.Module:
    """A random sequence classifier of one layer with one logit."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(seed)
    config = AutoConfig.for_model(
        kind,
        vocab_size=vocabulary,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        type_vocab_size=2 if kind == "bert" else 1,
        initializer_range=0.3,
        pad_token_id=0,
        num_labels=1,
    )
    model: torch.nn.Module = AutoModelForSequenceClassification.from_config(config).eval()
    return model


def write_reranker(folder: Path, positions: int = 64, seed: int = 7) -> Path:
    """A random BERT with one logit over word pieces, as a run of stage `score` leaves one."""
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_bytes(word_piece_json())
    classifier("bert", len(PIECES), positions, seed).save_pretrained(folder)  # type: ignore[operator]  # a method
    return folder


def logit(folder: Path, query: str, passage: str) -> float:
    """What the libraries alone make of a pair: `tokenizers` and `transformers`, cut at its positions."""
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForSequenceClassification

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.config.max_position_embeddings, strategy="only_second")
    pair = tokenizer.encode(query, passage)
    first = pair.ids.index(tokenizer.token_to_id("[SEP]"))
    types = [int(place > first) for place in range(len(pair.ids))]
    with torch.no_grad():
        found = model(input_ids=torch.tensor([pair.ids]), token_type_ids=torch.tensor([types])).logits
    return float(found[0, 0])
