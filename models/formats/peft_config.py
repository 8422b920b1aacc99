"""`adapter_config.json` of the PEFT library: what it says of LoRA and (IA)³, and what is refused by name.

https://huggingface.co/docs/peft/main/en/developer_guides/checkpoint. A key that is not known here may change
what an adapter computes, so it must be null, false or empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from tercet.models.errors import CheckpointError
from tercet.models.formats.sentence_transformers import json_in

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LARGEST_CONFIG_BYTES = 1 << 20
LARGEST_NUMBER = 1e9  # a file may hold whole numbers that no float can be
# What is read, what is for people, and what only the start of training depends on.
READ = frozenset({"peft_type", "base_model_name_or_path", "target_modules", "exclude_modules"})
READ_OF_LORA = frozenset({"r", "lora_alpha", "use_rslora", "lora_dropout", "layers_to_transform"})
WITHOUT_EFFECT = frozenset(
    {"auto_mapping", "inference_mode", "peft_version", "revision", "task_type", "init_ia3_weights"}
    | {"megatron_core", "qalora_group_size", "eva_config"}
)
# Others, such as PiSSA's, subtract from the base's own weights what the adapter starts with.
PLAIN_STARTS = (None, True, False, "gaussian", "orthogonal", "eva")
OFF: tuple[object, ...] = (None, False, "none", "", [], {})
# Kinds that could be expected here, and why they are not read.
REFUSED_KINDS = {
    "PREFIX_TUNING": "PEFT counts the positions of a text's tokens from behind the prefix, and here they "
    "stay as they are, so its states would differ; train a prefix with `tercet train`",
    "PROMPT_TUNING": "it puts vectors before the tokens of a text, which the heads would take for tokens",
}
Kind = Literal["LORA", "IA3"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class PeftConfig:
    """An adapter by PEFT.

    base_name: of the model that it was trained on, empty where that is not said; targets: ends of the names
    of the layers that it changes, None where an expression says which; excluded: of layers left out all the
    same; layers: numbers of the blocks, None for all; feedforward: ends of the names of layers whose input
    (IA)³ scales, None where an expression says which; rank, alpha: LoRA adds (alpha / rank) · B·A.
    """

    path: Path
    kind: Kind
    base_name: str
    targets: tuple[str, ...] | None
    excluded: tuple[str, ...] | None = ()
    layers: tuple[int, ...] | None = None
    feedforward: tuple[str, ...] | None = None
    rank: int = 1
    alpha: float = 1.0
    dropout: float = 0.0

    @property
    def scale(self) -> float:
        """Factor of B·A."""
        return self.alpha / self.rank

    def names_layer(self, name: str, block: int) -> bool | None:
        """Whether it says that it changes the layer of a name; None where an expression would have to be run,
        which a stranger may have written to run for ever.
        """
        if self.targets is None or self.excluded is None:
            return None
        in_block = self.layers is None or block in self.layers
        return in_block and _is_among(name, self.targets) and not _is_among(name, self.excluded)


def read_peft_config(folder: Path, kinds: tuple[Kind, ...] = KINDS) -> PeftConfig:
    """What an adapter's configuration says.

    Raises CheckpointError naming the key that is not read here; an adapter of no kind among `kinds` is not.
    """
    path = folder / CONFIG
    if path.is_file() and path.stat().st_size > LARGEST_CONFIG_BYTES:
        raise CheckpointError(
            f"{path} has {path.stat().st_size} bytes, more than the {LARGEST_CONFIG_BYTES} that are read"
        )
    values = json_in(path)
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a {type(values).__name__}; a JSON object is expected")
    try:
        return _config(path, values, kinds)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _config(path: Path, values: Mapping[str, Any], kinds: tuple[Kind, ...]) -> PeftConfig:
    kind = values.get("peft_type")
    if kind not in kinds:
        reason = REFUSED_KINDS.get(str(kind), f"{' and '.join(kinds)} can be")
        raise CheckpointError(f"peft_type {kind!r:.80} is not read here: {reason}")
    of_kind = {*READ_OF_LORA, "init_lora_weights"} if kind == "LORA" else {"feedforward_modules"}
    for name, value in sorted(values.items()):
        if name not in READ | WITHOUT_EFFECT | of_kind and value not in OFF:
            raise CheckpointError(
                f"{name} {value!r:.80} is not read here, as it may change what the adapter computes; "
                "train it without"
            )
    base_name = values.get("base_model_name_or_path") or ""
    if not isinstance(base_name, str):
        raise CheckpointError(f"base_model_name_or_path is {base_name!r:.80}; it must be a string")
    targets, excluded = _names(values, "target_modules"), _names(values, "exclude_modules", ())
    if kind == "IA3":
        feedforward = _names(values, "feedforward_modules", ())
        return PeftConfig(path, "IA3", base_name, targets, excluded, feedforward=feedforward)
    if values.get("init_lora_weights") not in PLAIN_STARTS:
        raise CheckpointError(
            f"init_lora_weights {values['init_lora_weights']!r:.80} is not read here, as it changes the "
            "base's own weights; save the adapter with PEFT's path_initial_model_for_weight_conversion"
        )
    rank: Any = values.get("r")
    alpha: Any = values.get("lora_alpha")
    dropout: Any = values.get("lora_dropout", 0.0)
    if not _is_number(rank) or not isinstance(rank, int) or rank < 1 or not _is_number(alpha):
        raise CheckpointError(f"r is {rank!r:.80} and lora_alpha {alpha!r:.80}; both are numbers")
    if not _is_number(dropout):
        raise CheckpointError(f"lora_dropout is {dropout!r:.80}; it must be a number")
    # With rslora the factor is alpha / √rank, https://arxiv.org/abs/2312.03732.
    alpha = float(alpha * math.sqrt(rank)) if values.get("use_rslora") else float(alpha)
    layers = _layers(values.get("layers_to_transform"))
    return PeftConfig(
        path, "LORA", base_name, targets, excluded, layers, rank=rank, alpha=alpha, dropout=float(dropout)
    )


def _names(
    values: Mapping[str, Any], key: str, absent: tuple[str, ...] | None = None
) -> tuple[str, ...] | None:
    """Ends of layers' names, None for an expression."""
    value = values.get(key)
    if value is None:
        return absent
    if isinstance(value, str):
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise CheckpointError(f"{key} is {value!r:.80}; it must be a list of names, or an expression")
    return tuple(value)


def _layers(value: object) -> tuple[int, ...] | None:
    numbers = [value] if type(value) is int else value
    if numbers in (None, []):
        return None
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise CheckpointError(f"layers_to_transform is {value!r:.80}; it must be a list of whole numbers")
    return tuple(numbers)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def _is_among(name: str, ends: tuple[str, ...]) -> bool:
    return any(name == end or name.endswith(f".{end}") for end in ends)
