"""Which transformers body a checkpoint's configuration stands for, and how that computes attention.

Repositories whose body is in code of their own are read where transformers has the same body under another
name; their code is never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers import CONFIG_MAPPING, MODEL_MAPPING, AutoConfig, GteConfig, PreTrainedConfig

from tercet.models.checkpoint import CONFIG_FILE, read_json
from tercet.models.errors import CheckpointError, reason

# What the repositories of Alibaba's GTE call the body that transformers has as `gte`.
GTE_NAME = "new"
# What transformers' GTE has built in, of what the other could be told.
GTE_FIXED = {
    "position_embedding_type": "rope",
    "layer_norm_type": "layer_norm",
    "pack_qkv": True,
    "logn_attention_scale": False,
}
# Read by these bodies in one way alone, which releases of transformers before 5 could be told to change.
ABSOLUTE_POSITIONS = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra", "xlm-roberta-xl"})
# What values of wrong types and sizes lead to in the library.
NOT_UNDERSTOOD = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ArithmeticError,
    StrictDataclassError,
)


def body_config(folder: Path) -> PreTrainedConfig:
    """The configuration of a checkpoint's body.

    Raises CheckpointError that names the family where transformers has no such body.
    """
    path = folder / CONFIG_FILE
    values = read_json(path)
    try:
        config: PreTrainedConfig
        if values.get("model_type") == GTE_NAME:
            config = GteConfig(**_gte_values(values, path))
        else:
            _require_known(values, path)
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except NOT_UNDERSTOOD as error:
        raise CheckpointError(f"{path} is not understood: {reason(error)}") from error
    if hasattr(config, "use_cache"):
        config.use_cache = False  # no text is continued
    return config


def attention_of(config: PreTrainedConfig) -> str:
    """The name under which transformers runs a body's attention: fused where it has that, else `eager`."""
    return "sdpa" if getattr(MODEL_MAPPING[type(config)], "_supports_sdpa", False) else "eager"


def _require_known(values: Mapping[str, Any], path: Path) -> None:
    family = values.get("model_type")
    positions = values.get("position_embedding_type") or "absolute"
    if "lora_adaptations" in values:
        raise CheckpointError(
            f"{path}: jina-embeddings-v3 with its adapters within its weights has to be unpacked: "
            "`tercet checkpoints unpack-tasks` writes it as jinaai/jina-embeddings-v3-hf has it, or take that"
        )
    if family in ABSOLUTE_POSITIONS and positions != "absolute":
        raise CheckpointError(
            f"{path}: {family!r} with position_embedding_type {positions!r} is not read here, as "
            "transformers has it no more; take another checkpoint"
        )
    if not isinstance(family, str) or family not in CONFIG_MAPPING:
        needs_code = "; it comes with code of its own, which is not run" if "auto_map" in values else ""
        raise CheckpointError(
            f"{path}: transformers {transformers.__version__} has no model_type {family!r}{needs_code}; take "
            "another checkpoint"
        )
    if getattr(CONFIG_MAPPING[family], "is_encoder_decoder", False):
        raise CheckpointError(f"{path}: {family!r} has an encoder and a decoder; take a model with one body")
    if CONFIG_MAPPING[family] not in MODEL_MAPPING:
        raise CheckpointError(f"{path}: transformers has no body for model_type {family!r}")


def _gte_values(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Keys of `new` as those of transformers' `gte`."""
    for name, fixed in GTE_FIXED.items():
        if values.get(name, fixed) != fixed:
            raise CheckpointError(
                f"{path}: GTE with {name} {values[name]!r} is not read here, but with {fixed!r}"
            )
    known = GteConfig().to_dict()
    kept = {name: value for name, value in values.items() if name in known and name != "model_type"}
    return {**kept, "rope_parameters": _gte_rotation(values, path)}


def _gte_rotation(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """How positions rotate: frequencies θ^(-2i/d), or with factor s (sθ)^(-2i/d) / s^(2/d).

    The latter is the fixed NTK scaling of https://kexue.fm/archives/9706, equation 6.
    """
    theta = float(values.get("rope_theta", 10_000.0))
    scaling = values.get("rope_scaling")
    if scaling is None:
        return {"rope_type": "default", "rope_theta": theta}
    kind = scaling.get("type")
    if kind != "ntk" or scaling.get("mixed_b") is not None:
        raise CheckpointError(f"{path}: GTE with rope_scaling {scaling} is not read here, but with type ntk")
    factor = float(scaling["factor"])
    width = values["hidden_size"] // values["num_attention_heads"]
    return {"rope_type": "linear", "rope_theta": theta * factor, "factor": factor ** (2 / width)}
