"""A tiny base checkpoint inside a package of its own, and training pairs over its vocabulary.

And tiny random bodies of both families for the pre-training objectives.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: install tercet[train]")
pytest.importorskip("transformers", reason="training needs transformers: install tercet[train]")

PACKAGE = "tiny_base_checkpoint"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"word{number}" for number in range(40)]
PAIRS = 40


def write_base(folder: Path) -> str:
    """A random one-layer BERT over whole words; returns the sha256 of its weights."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    vocabulary = {piece: i for i, piece in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.3,
    )
    BertModel(config).eval().save_pretrained(folder)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(params=["bert", "xlm-roberta"])
def tiny_body(request: pytest.FixtureRequest) -> torch.nn.Module:
    """A random body of four layers over 40 ids, of either family, in evaluation mode."""
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(7)
    config = AutoConfig.for_model(
        request.param,
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
        initializer_range=0.3,
        pad_token_id=0 if request.param == "bert" else 1,
    )
    body: torch.nn.Module = AutoModel.from_config(config, add_pooling_layer=False).eval()
    return body


def write_pairs(path: Path) -> None:
    """Passages of six words, each with a query of two of them."""
    words = random.Random(3)  # noqa: S311  # reproducible text, no secret
    lines = []
    for _ in range(PAIRS):
        passage = words.sample(WORDS, 6)
        lines.append(json.dumps({"query": " ".join(words.sample(passage, 2)), "pos": [" ".join(passage)]}))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def tiny_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Settings of a run that takes about a second; its data lie in `tmp_path / "data"`."""
    packages = tmp_path / "packages"
    digest = write_base(packages / PACKAGE / "model")
    monkeypatch.syspath_prepend(str(packages))
    (tmp_path / "data").mkdir()
    write_pairs(tmp_path / "data" / "pairs.jsonl")
    return {
        "name": "tiny",
        "seed": 5,
        "base": {
            "package": PACKAGE,
            "folder": "model",
            "sha256": digest,
            "name": "tiny random BERT",
            "licence": "Apache-2.0",
        },
        "encoder": {"pooling": "mean", "colbert_dimension": 8, "max_length": 32},
        "data": {
            "query_tokens": 8,
            "passage_tokens": 16,
            "sources": [
                {"path": "pairs.jsonl", "title": "Made pairs", "licence": "CC0 1.0", "development_pairs": 8}
            ],
        },
        "initial": {"idf_scale": 0.1, "ridge_penalty": 1.0, "whitening": 0.3, "tokens_each": 1000},
        "losses": {
            "temperature": 0.05,
            "sparse": 1.0,
            "colbert": 1.0,
            "sum": 1.0,
            "distill_sparse": 1.0,
            "distill_colbert": 1.0,
        },
        "optimization": {
            "epochs": 4,
            "batch_pairs": 8,
            "learning_rate": 0.01,
            "weight_decay": 0.0,
            "warmup": 0.1,
        },
    }
