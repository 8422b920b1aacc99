"""Writes a tiny random checkpoint of a family of encoders, with the files that its repository has.

Weights are random, so that states of different texts differ, and come from transformers itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, GteConfig, GteModel, PreTrainedModel

from tercet.models.weights.head_weights import HeadWeights, LinearHead, write_heads
from tests.tiny.late_folders import Layer, write_dense
from tests.tiny.vocabularies import Kind

WIDTH = 32
COLBERT = 16
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.15,
}
SEED = 7
MODULE = "sentence_transformers.models.{}"

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Family:
    """One family. name: as people know it; config: of config.json, without `vocab_size`; vocabulary: its
    kind, and then its special tokens, in order of their ids, and of these the first, the last and the
    unknown; pooling: as sentence-transformers has it; layers: rows of each Dense after it; heads: whether
    BGE-M3's stand beside it; exports: whether it has a graph.
    """

    name: str
    config: Mapping[str, Any]
    vocabulary: tuple[Kind, Sequence[str], str, str, str]
    pooling: str = "mean"
    layers: tuple[int, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    heads: bool = False
    exports: bool = True
    body: Callable[[Path], PreTrainedModel] | None = None
    as_published: Callable[[Weights], Weights] = dict
    sides: tuple[str, ...] = ("dense",)

    @property
    def key(self) -> str:
        """Its name in the names of files."""
        return self.name.lower().replace(" ", "-")


def write(family: Family, folder: Path) -> Path:
    """Writes the checkpoint of a family."""
    folder.mkdir(parents=True)
    kind, special, *named = family.vocabulary
    tokenizer = kind(special, *named)
    (folder / "tokenizer.json").write_bytes(tokenizer.to_str().encode())
    _json(folder / "config.json", {**family.config, "vocab_size": tokenizer.get_vocab_size()})
    _json(folder / "tokenizer_config.json", _tokenizer_config(special))
    _write_modules(folder, family)
    torch.manual_seed(SEED)
    model = random_body(folder) if family.body is None else family.body(folder)
    scratch = folder / "scratch"
    model.save_pretrained(scratch)
    weights = family.as_published(load_file(scratch / "model.safetensors"))
    for path in scratch.iterdir():
        path.unlink()
    scratch.rmdir()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if family.heads:
        write_heads(folder, random_heads(WIDTH))
    return folder


def random_body(folder: Path) -> PreTrainedModel:
    """What transformers itself makes of a configuration."""
    config = AutoConfig.from_pretrained(folder)
    return _vary(AutoModel.from_config(config))  # type: ignore[no-untyped-call]  # untyped library


def gte_body(folder: Path) -> PreTrainedModel:
    """The body that Alibaba's repositories call `new`: NTK scaling by 8 from θ = 20,000, 8 values a head."""
    sizes = json.loads((folder / "config.json").read_text())
    known = {name: sizes[name] for name in (*SIZES, "vocab_size", "max_position_embeddings")}
    rotation = {"rope_type": "linear", "rope_theta": 160_000.0, "factor": 8 ** (2 / 8)}
    config = GteConfig(**known, rope_parameters=rotation, layer_norm_eps=1e-12)
    return _vary(GteModel(config))


def gte_weights(weights: Weights) -> Weights:
    """With the prefix and the head of lexical weights that `gte-multilingual-base` has."""
    prefixed = {f"new.{name}": values for name, values in weights.items()}
    head = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(SEED)) * 0.3
    return {**prefixed, "classifier.weight": head, "classifier.bias": torch.tensor([0.1])}


def random_heads(width: int) -> HeadWeights:
    """Heads of lexical weights and token vectors."""
    random = np.random.default_rng(SEED)

    def values(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return random.normal(0, 0.2, shape).astype(np.float32)

    return HeadWeights(
        LinearHead(values(1, width), np.array([0.1], np.float32)),
        LinearHead(values(COLBERT, width), values(COLBERT)),
    )


def _vary(model: PreTrainedModel) -> PreTrainedModel:
    """Also norms and biases, which start as ones and zeros: a lost one should show."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    model.eval()  # type: ignore[no-untyped-call]  # untyped library
    return model


def _tokenizer_config(special: Sequence[str]) -> dict[str, Any]:
    """What the class that a peer loads it with needs to know."""
    padding = next((name for name in special if "pad" in name.lower()), special[0])
    return {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": padding, "model_max_length": 512}


def _write_modules(folder: Path, family: Family) -> None:
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")]
    for rows, columns in zip(family.layers, (WIDTH, *family.layers), strict=False):
        kinds.append(("Dense", f"{len(kinds)}_Dense"))
        write_dense(folder / kinds[-1][1], Layer(rows, columns), seed=len(kinds))
    kinds.append(("Normalize", f"{len(kinds)}_Normalize"))
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": MODULE.format(kind)}
        for place, (kind, path) in enumerate(kinds)
    ]
    _json(folder / "modules.json", modules)
    (folder / "1_Pooling").mkdir()
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "lasttoken")
    pooling = {f"pooling_mode_{mode}": mode.startswith(family.pooling) for mode in modes}
    pooling["pooling_mode_mean_sqrt_len_tokens"] = False
    _json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": WIDTH, **pooling})
    _json(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    _json(
        folder / "config_sentence_transformers.json",
        {"prompts": dict(family.prompts), "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )


def _json(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
