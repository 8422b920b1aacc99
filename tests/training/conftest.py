"""A tiny base checkpoint inside a package of its own, training pairs over its vocabulary, settings of a run.

And tiny random bodies of both families for the pre-training objectives.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tercet.models.checkpoint import EncodingSettings
from tercet.models.tokenizer import Tokenizer
from tercet.training.settings.reading import settings_from

if TYPE_CHECKING:
    from tercet.training.runs.state import Progress

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
    words = random.Random(3)
    lines = []
    for _ in range(PAIRS):
        passage = words.sample(WORDS, 6)
        lines.append(json.dumps({"query": " ".join(words.sample(passage, 2)), "pos": [" ".join(passage)]}))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def written_base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The tiny base, written once, and the sha256 of its weights."""
    folder = tmp_path_factory.mktemp("base") / "model"
    return folder, write_base(folder)


@pytest.fixture
def tiny_base(written_base: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Puts the base package and `data/pairs.jsonl` into `tmp_path`; returns the sha256 of its weights."""
    packages = tmp_path / "packages"
    folder, digest = written_base
    shutil.copytree(folder, packages / PACKAGE / "model")
    monkeypatch.syspath_prepend(str(packages))
    (tmp_path / "data").mkdir()
    write_pairs(tmp_path / "data" / "pairs.jsonl")
    return digest


@pytest.fixture
def base_values(tiny_base: str) -> dict[str, object]:
    """Settings of the tiny base."""
    return {
        "package": PACKAGE,
        "folder": "model",
        "sha256": tiny_base,
        "name": "tiny random BERT",
        "licence": "Apache-2.0",
    }


@pytest.fixture
def run_values(base_values: dict[str, object]) -> dict[str, Any]:
    """Settings of a run of `tercet train` that takes a second; dropout is on, as in a real base."""
    return {
        "name": "tiny",
        "stage": "finetune",
        "seed": 5,
        "base": base_values,
        "encoder": {"pooling": "mean", "max_length": 32},
        "data": {
            "query_tokens": 8,
            "passage_tokens": 16,
            "sources": [
                {"path": "pairs.jsonl", "title": "Made pairs", "licence": "CC0 1.0", "development_pairs": 8}
            ],
        },
        "batches": {"groups": [{"tokens": 16, "batch": 8}], "negatives": 2, "sub_batch_tokens": 64},
        "heads": {"colbert_dimension": 8, "idf_scale": 0.1, "tokens_each": 1000},
        "losses": {"temperature": 0.05},
        "optimization": {"steps": 12, "learning_rate": 0.01},
        "evaluate_steps": 4,
        "save_steps": 4,
    }


@pytest.fixture
def run(tmp_path: Path, run_values: dict[str, Any]) -> Callable[..., Progress]:
    """Runs the tiny settings, changed at dotted paths, into a folder of the given name."""
    from tercet.training.run import run_training

    def run(
        name: str, changes: dict[str, Any] | None = None, report: Callable[[Any], None] | None = None
    ) -> Progress:
        settings = settings_from(changed(run_values, changes or {}))
        told = report or (lambda line: None)
        return run_training(settings, tmp_path / "data", tmp_path / name, told, threads=1)

    return run


def changed(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Values changed at dotted paths; what is changed to None is left out."""
    values = deepcopy(values)
    for path, value in changes.items():
        *parents, last = path.split(".")
        inner = values
        for key in parents:
            inner = inner.setdefault(key, {})
        if value is None:
            inner.pop(last, None)
        else:
            inner[last] = deepcopy(value)
    return values


@pytest.fixture
def settings_of(run_values: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """The tiny settings, changed at dotted paths, as the run reads them."""
    return lambda changes: settings_from(changed(run_values, changes))


@pytest.fixture
def base_folder(tiny_base: str, tmp_path: Path) -> Path:
    """The folder of the tiny base checkpoint."""
    return tmp_path / "packages" / PACKAGE / "model"


@pytest.fixture
def tokenizer(base_folder: Path) -> Tokenizer:
    """The tokenizer of the tiny base: `word0` … `word39` are ids 5 … 44; [CLS] is 2 and [SEP] 3."""
    return Tokenizer.load(base_folder, EncodingSettings(max_length=32))
