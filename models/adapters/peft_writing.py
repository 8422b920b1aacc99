"""LoRA and (IA)³ written as the PEFT library has them, so that `PeftModel.from_pretrained` opens them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from tercet.models.adapters.blocks import PATHS
from tercet.models.adapters.files import is_adapter
from tercet.models.adapters.peft_files import PARTS, PREFIX
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.settings import (
    INPUT_SCALED,
    Ia3Settings,
    LoraSettings,
    PrefixSettings,
    PromptSettings,
    StackSettings,
)
from tercet.models.errors import UnsupportedError
from tercet.models.files import replace_file
from tercet.models.formats.peft_config import CONFIG, WEIGHTS

PEFT_NAMES = {own: peft for peft, own in PARTS.items()}


def write_peft_adapter(folder: Path, adapter: Adapter) -> None:
    """Writes an adapter for PEFT: the same hidden states of the same body. Its heads, if any, are left out.

    Raises UnsupportedError for a kind that PEFT has not, or computes otherwise, and where the folder holds an
    adapter.
    """
    settings = adapter.settings
    if is_adapter(folder):
        raise UnsupportedError(f"{folder} holds an adapter; give another folder")
    if adapter.below:
        raise UnsupportedError(
            f"it was trained on top of {len(adapter.below)} other(s), and PEFT puts none below; merge LoRA "
            "with `tercet adapters merge`"
        )
    if isinstance(settings, PrefixSettings | PromptSettings):
        raise UnsupportedError(
            f"PEFT counts the positions of a text's tokens from behind a {settings.kind}, and here they "
            "stay as they are, so its states would differ; LoRA and (IA)³ can be written"
        )
    if not isinstance(settings, LoraSettings | Ia3Settings):
        several = isinstance(settings, StackSettings)
        raise UnsupportedError(
            f"PEFT has no adapters of kind {adapter.kind}; LoRA and (IA)³ can be written"
            + (", and its parts each alone" if several else "")
        )
    arrays = {}
    for name, array in adapter.arrays.items():
        _, block, role, part = name.split(".")
        scale = part == "scale"
        shape = array.shape if not scale else (1, -1) if role == INPUT_SCALED else (-1, 1)
        path = f"encoder.layer.{block}.{PATHS[role]}"  # type: ignore[index]  # a role
        arrays[f"{PREFIX}{path}.{PEFT_NAMES[part]}"] = array.reshape(shape)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / WEIGHTS, save(arrays))
    text = json.dumps(_config(adapter, settings), indent=2, ensure_ascii=False)
    replace_file(folder / CONFIG, f"{text}\n".encode())


def _config(adapter: Adapter, settings: LoraSettings | Ia3Settings) -> dict[str, Any]:
    """Layers by their whole names, as the end of one, `output.dense`, would be that of another, too."""

    def paths(roles: Any) -> list[str]:
        layers = range(adapter.base.body.layers)
        return [f"encoder.layer.{layer}.{PATHS[role]}" for layer in layers for role in roles]

    common = {
        "base_model_name_or_path": adapter.base.name,
        "inference_mode": True,
        "target_modules": paths(settings.targets),
        "task_type": "FEATURE_EXTRACTION",
    }
    if isinstance(settings, Ia3Settings):
        scaled = [role for role in settings.targets if role == INPUT_SCALED]
        return {"peft_type": "IA3", **common, "feedforward_modules": paths(scaled)}
    return {
        "peft_type": "LORA",
        **common,
        "bias": "none",
        "lora_alpha": settings.alpha,
        "lora_dropout": settings.dropout,
        "r": settings.rank,
    }
