"""jina-embeddings-v3 with its adapters within its weights, written as jina-embeddings-v3-hf has them.

Each of its layers has the weights `parametrizations.weight.original` and LoRA of all tasks, `lora_A` and
`lora_B`, a slice for each task in the order of `lora_adaptations`: [N, r, in] and [N, out, r], of an
embedding [N, in, r] and [N, r, out]. A task adds α/r · B·A to the weights. Its layers are those of
transformers under other names, query, key and value in one. https://arxiv.org/abs/2409.10173, section 4
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tercet.models.checkpoint import CONFIG_FILE, SETTINGS_FILE, TOKENIZER_CONFIG, read_json
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import weight_files
from tercet.models.formats.peft_config import CONFIG, WEIGHTS
from tercet.models.formats.sentence_transformers import PROMPTS_FILE
from tercet.models.representations import Float32
from tercet.models.task_adapters import EMBEDDING, LINEAR, PREFIX
from tercet.models.tokenizer import TOKENIZER_FILES
from tercet.models.weights.tensor_files import read_weights

ADAPTATIONS = "lora_adaptations"
SLICES = ".parametrizations.weight."
RENAMED = {
    r"^roberta\.": "",
    r"^emb_ln\b": "embeddings.LayerNorm",
    r"^encoder\.layers\.": "layers.",
    r"\bmixer\.out_proj\b": "self_attn.o_proj",
    r"\bnorm1\b": "post_attention_layernorm",
    r"\bnorm2\b": "post_mlp_layernorm",
}
FUSED = "mixer.Wqkv"
PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
COPIED = (*TOKENIZER_FILES, TOKENIZER_CONFIG, "special_tokens_map.json", "README.md")
SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "hidden_act"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "matryoshka_dimensions"),
)
# What transformers' body has built in.
FIXED = {"position_embedding_type": "rotary", "emb_pooler": "mean", "hidden_act": "gelu"}


def unpack_tasks(folder: Path, output: Path) -> list[str]:
    """Writes the checkpoint, in float32, with a folder of PEFT's for each task. Returns the tasks.

    Raises CheckpointError where the folder is no such checkpoint, or the output exists.
    """
    if output.exists():
        raise CheckpointError(f"{output} exists; name a new folder")
    config = read_json(folder / CONFIG_FILE)
    tasks = _tasks(folder, config)
    body: dict[str, Float32] = {}
    adapters: dict[str, dict[str, Float32]] = {task: {} for task in tasks}
    for path in weight_files(folder):
        for name, array in read_weights(path).items():
            layer, _, part = name.partition(SLICES)
            if ".pooler." in name:  # over a state that no text's vector is made of
                continue
            if part in ("", "original"):
                body.update(_named(layer if part == "" else f"{layer}.weight", array))
            elif part in ("0.lora_A", "0.lora_B") and array.ndim == 3 and len(array) == len(tasks):
                for own, slice_of_task in zip(adapters.values(), array, strict=True):
                    own.update(_lora(layer, part[-1], slice_of_task))
            else:
                raise CheckpointError(
                    f"{path}: {name} of shape {list(array.shape)} is no slices of {len(tasks)} tasks"
                )
    output.mkdir(parents=True)
    for name in COPIED:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, output / name)
    save_file(body, output / "model.safetensors", {"format": "pt"})
    for task, own in adapters.items():
        (output / task).mkdir()
        save_file(own, output / task / WEIGHTS, {"format": "pt"})
        _write(output / task / CONFIG, _adapter_config(config, own))
    prompts = {_folder(task): text for task, text in dict(config.get("task_instructions") or {}).items()}
    _write(output / PROMPTS_FILE, {"prompts": prompts})
    _write(output / SETTINGS_FILE, {"pooling": "mean"})
    _write(output / CONFIG_FILE, _config(config))  # last: without it a folder is no checkpoint
    return tasks


def _tasks(folder: Path, config: Mapping[str, Any]) -> list[str]:
    """The names of the tasks' folders, in the order of the slices."""
    named = config.get(ADAPTATIONS)
    if not isinstance(named, list) or not named or not all(isinstance(name, str) for name in named):
        raise CheckpointError(
            f"{folder / CONFIG_FILE} has no {ADAPTATIONS}, by which jina-embeddings-v3 names its adapters"
        )
    other = {key: config.get(key) for key, value in FIXED.items() if config.get(key, value) != value}
    if other:
        raise CheckpointError(f"{folder / CONFIG_FILE} has {other}, which transformers' body has not")
    if not all(isinstance(config.get(key), int | float) for key in ("lora_rank", "lora_alpha")):
        raise CheckpointError(f"{folder / CONFIG_FILE} has no numbers lora_rank and lora_alpha; restore it")
    tasks = [_folder(name) for name in named]
    if len(set(tasks)) < len(tasks) or not all(re.fullmatch(r"\w{1,64}", task) for task in tasks):
        raise CheckpointError(f"{folder / CONFIG_FILE}: {ADAPTATIONS} is {named!r:.80}; tasks need names")
    return tasks


def _folder(task: str) -> str:
    return task.replace(".", "_").replace("-", "_")


def _renamed(layer: str) -> str:
    for pattern, name in RENAMED.items():
        layer = re.sub(pattern, name, layer)
    return layer


def _named(name: str, array: Float32) -> Iterator[tuple[str, Float32]]:
    """Weights under the names of transformers' body; those of query, key and value apart."""
    own = _renamed(name)
    if FUSED not in own:
        yield own, array
        return
    for part, rows in zip(PARTS, np.split(array, len(PARTS)), strict=True):
        yield own.replace(FUSED, part), np.ascontiguousarray(rows)


def _lora(layer: str, half: str, array: Float32) -> Iterator[tuple[str, Float32]]:
    """One task's A or B of a layer under PEFT's names; query, key and value share A."""
    own = f"{PREFIX}{_renamed(layer)}"
    if layer.endswith("_embeddings"):
        yield own + EMBEDDING["AB".index(half)], np.ascontiguousarray(array.T)
        return
    fused = FUSED in own
    parts = [array] * len(PARTS) if half == "A" or not fused else np.split(array, len(PARTS))
    for part, rows in zip(PARTS if fused else ("",), parts, strict=fused):
        yield own.replace(FUSED, part) + LINEAR["AB".index(half)], np.ascontiguousarray(rows)


def _adapter_config(config: Mapping[str, Any], adapter: Mapping[str, Float32]) -> dict[str, Any]:
    layers = {name.removeprefix(PREFIX).partition(".lora_")[0] for name in adapter}
    return {
        "peft_type": "LORA",
        "r": config.get("lora_rank"),
        "lora_alpha": config.get("lora_alpha"),
        "target_modules": sorted({layer.rpartition(".")[2] for layer in layers}),
        "task_type": "FEATURE_EXTRACTION",
    }


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model_type": "jina_embeddings_v3",
        "architectures": ["JinaEmbeddingsV3Model"],
        "rope_parameters": {"rope_type": "default", "rope_theta": config.get("rotary_emb_base", 10_000.0)},
        **{key: config[key] for key in SIZES if key in config},
    }


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
