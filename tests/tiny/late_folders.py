"""Tiny random checkpoints of the ColBERT family, in the layouts that people have them in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tests.tiny.word_pieces import BERT_WIDTH, word_piece_json

MARKERS = ("[Q] ", "[D] ")
# As PyLate 1.1 writes it for lightonai/GTE-ModernColBERT-v1, with lengths for the tiny body.
PYLATE_CONFIG: dict[str, Any] = {
    "__version__": {"sentence_transformers": "4.0.1", "transformers": "4.48.2", "pytorch": "2.5.1"},
    "prompts": {},
    "default_prompt_name": None,
    "similarity_fn_name": "MaxSim",
    "query_prefix": "[Q] ",
    "document_prefix": "[D] ",
    "query_length": 12,
    "document_length": 24,
    "attend_to_expansion_tokens": False,
    "skiplist_words": [",", ".", "!", "?"],
    "do_query_expansion": True,
}
TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLINGS = ("pooling_mode_cls_token", "pooling_mode_mean_tokens")
IDENTITY, TANH, GELU = (
    "torch.nn.modules.linear.Identity",
    "torch.nn.modules.activation.Tanh",
    "torch.nn.modules.activation.GELU",
)


@dataclass(frozen=True)
class Layer:
    """What the folder of one Dense holds."""

    rows: int
    columns: int = BERT_WIDTH
    bias: bool = False
    activation: str = IDENTITY
    residual: bool = False
    feature: str | None = None


def write_body(folder: Path, added: Sequence[str] = MARKERS, kind: str = "bert") -> Path:
    """A random body of two layers and its tokenizer, with added tokens at the end of the vocabulary."""
    from tokenizers import AddedToken, Tokenizer
    from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_str(word_piece_json().decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in added])
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    names = {
        name: f"[{name.removesuffix('_token').upper()}]"
        for name in ("cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
    }
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 48, **names})
    )
    shared: dict[str, Any] = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": BERT_WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 2 * BERT_WIDTH,
        "max_position_embeddings": 48,
        "initializer_range": 0.15,
    }
    torch.manual_seed(7)
    if kind == "bert":
        body: Any = BertModel(BertConfig(**shared))
    else:
        special = {
            "pad_token_id": 0,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "cls_token_id": 2,
            "sep_token_id": 3,
        }
        shared |= {"global_attn_every_n_layers": 2, "local_attention": 32, **special}
        body = ModernBertModel(ModernBertConfig(**shared))
    body.eval().save_pretrained(folder)
    return folder


def write_dense(folder: Path, layer: Layer, seed: int) -> dict[str, torch.Tensor]:
    """The folder of one Dense as its library writes it; returns its weights."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.from_numpy(random.normal(0, 0.3, shape).astype(np.float32))

    weights = {"linear.weight": drawn(layer.rows, layer.columns)}
    if layer.bias:
        weights["linear.bias"] = drawn(layer.rows)
    if layer.residual and layer.rows != layer.columns:
        weights["residual.weight"] = drawn(layer.rows, layer.columns)
    config = {
        "in_features": layer.columns,
        "out_features": layer.rows,
        "bias": layer.bias,
        "activation_function": layer.activation,
    }
    if layer.residual:
        config["use_residual"] = True
    if layer.feature is not None:
        config["module_input_name"] = config["module_output_name"] = layer.feature
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors")
    return weights


def write_pylate(
    folder: Path, layers: Sequence[Layer] = (Layer(16),), kind: str = "bert", **config: Any
) -> Path:
    """A folder of PyLate. config: over PYLATE_CONFIG."""
    given = {**PYLATE_CONFIG, **config}
    markers = [given[name] for name in ("query_prefix", "document_prefix") if given[name]]
    write_body(folder, markers, kind)
    modules = [TRANSFORMER]
    for index, layer in enumerate(layers, start=1):
        name = f"{index}_Dense"
        write_dense(folder / name, layer, seed=index)
        modules.append({"idx": index, "name": str(index), "path": name, "type": "pylate.models.Dense.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(given))
    length = given["document_length"] - 1
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": length, "do_lower_case": False})
    )
    return folder


def write_multi_vector(
    folder: Path, expansion: dict[str, Any] | None, layers: Sequence[Layer] = (), **transformer: Any
) -> Path:
    """A folder of sentence-transformers' MultiVectorEncoder. transformer: further keys of its file."""
    write_body(folder)
    layers = layers or (Layer(16, feature="token_embeddings"),)
    package = "sentence_transformers.{}"
    modules = [{**TRANSFORMER, "type": package.format("base.modules.transformer.Transformer")}]

    def add(name: str, kind: str) -> Path:
        path = f"{len(modules)}_{name}"
        modules.append(
            {"idx": len(modules), "name": str(len(modules)), "path": path, "type": package.format(kind)}
        )
        (folder / path).mkdir(exist_ok=True)
        return folder / path

    for index, layer in enumerate(layers, start=1):
        path = folder / f"{index}_Dense"
        write_dense(path, layer, seed=index)
        add("Dense", "base.modules.dense.Dense")
    mask = add("MultiVectorMask", "multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask")
    (mask / "config.json").write_text(
        json.dumps(
            {"skiplist_words": [",", "."], "skiplist_tasks": ["document"], "keep_only_token_ids": None}
        )
    )
    normalize = add("Normalize", "base.modules.normalize.Normalize")
    names = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    (normalize / "config.json").write_text(json.dumps(names))
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps(
            {
                "__version__": {"sentence_transformers": "6.2.0"},
                "model_type": "MultiVectorEncoder",
                "prompts": {"query": "[Q] ", "document": "[D] "},
                "default_prompt_name": None,
                "similarity_fn_name": "maxsim",
            }
        )
    )
    described: dict[str, Any] = {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        "module_output_name": "token_embeddings",
        **transformer,
    }
    if expansion is not None:
        described["query_expansion"] = expansion
    (folder / "sentence_bert_config.json").write_text(json.dumps(described))
    return folder


def write_stanford(folder: Path, added: Sequence[str] = (), **metadata: Any) -> Path:
    """A checkpoint of Stanford's ColBERT: projection in the weight file, artifact.metadata beside it."""
    write_body(folder, ("[unused0]", "[unused1]", *added))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
    random = np.random.default_rng(9)
    projection = torch.from_numpy(random.normal(0, 0.3, (16, BERT_WIDTH)).astype(np.float32))
    body = {f"bert.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
    save_file({**body, "linear.weight": projection}, folder / "model.safetensors", {"format": "pt"})
    # Keys as in colbert-ir/colbertv2.0.
    given = {
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_token": "[Q]",
        "doc_token": "[D]",
        "attend_to_mask_tokens": False,
        "similarity": "cosine",
        "dim": 16,
        "query_maxlen": 12,
        "doc_maxlen": 24,
        "mask_punctuation": True,
        **metadata,
    }
    (folder / "artifact.metadata").write_text(json.dumps(given))
    return folder


def write_pooled(
    folder: Path, layers: Sequence[Layer], pooling: str = POOLINGS[1], *, normalize: bool = True
) -> Path:
    """A folder of sentence-transformers with Dense modules after its pooling."""
    write_body(folder, ())
    package = "sentence_transformers.models.{}"
    modules = [TRANSFORMER, {"idx": 1, "name": "1", "path": "1_Pooling", "type": package.format("Pooling")}]
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": BERT_WIDTH, **dict.fromkeys(POOLINGS, False), pooling: True})
    )
    for index, layer in enumerate(layers, start=2):
        name = f"{index}_Dense"
        write_dense(folder / name, layer, seed=index)
        modules.append({"idx": index, "name": str(index), "path": name, "type": package.format("Dense")})
    if normalize:
        index = len(modules)
        modules.append(
            {
                "idx": index,
                "name": str(index),
                "path": f"{index}_Normalize",
                "type": package.format("Normalize"),
            }
        )
        (folder / f"{index}_Normalize").mkdir()
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 24, "do_lower_case": False})
    )
    return folder
