"""Adapters of the PEFT library: read as those of a base here, and written so that PEFT opens them.

PEFT's files hold no fingerprint of the base, but at most a name, so who reads them gives the base. They come
from strangers: sizes are bounded, nothing is unpickled, and no expression of theirs is run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from safetensors import deserialize

from tercet.models.adapters.blocks import PATHS, ROLES, BodyShape, Role
from tercet.models.adapters.files import is_peft_adapter, read_adapter
from tercet.models.adapters.record import Adapter, AdapterBase
from tercet.models.adapters.settings import INPUT_SCALED, Ia3Settings, LoraSettings
from tercet.models.checkpoint import CONFIG_FILE, read_json
from tercet.models.errors import CheckpointError
from tercet.models.files import UNREADABLE_ARRAYS
from tercet.models.formats.peft_config import WEIGHTS, PeftConfig, read_peft_config
from tercet.models.representations import Float32

PREFIX = "base_model.model."
NAME = re.compile(
    re.escape(PREFIX)
    + r"(?P<body>\w{1,40}\.)?(?P<layer>encoder\.layer\.(?P<block>0|[1-9][0-9]{0,3})\.(?P<place>[a-z.]{1,40}))"
    + r"\.(?P<part>lora_A\.weight|lora_B\.weight|ia3_l)"
)
# Of a layer over the states, which no encoder here has.
POOLER = re.compile(re.escape(PREFIX) + r"(\w{1,40}\.)?pooler\.dense\.\w+(\.weight)?")
ROLE_AT: dict[str, Role] = {place: role for role, place in PATHS.items()}
HEADER_BYTES = 10_000_000
PARTS = {"lora_A.weight": "lora_a", "lora_B.weight": "lora_b", "ia3_l": "scale"}
NUMBERS: dict[str, Any] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
HIGH_HALF = 16  # bits by which bfloat16 lies above the low half of a float32


def read_adapter_for(folder: Path, checkpoint: Path, base: AdapterBase) -> Adapter:
    """The adapter in a folder, in our form or in PEFT's; that of PEFT's becomes one of the base.

    checkpoint: folder of the base, whose names that in PEFT's configuration must be among.
    Raises CheckpointError naming the file at fault; whether one in our form is of this base is not asked.
    """
    if not is_peft_adapter(folder):
        return read_adapter(folder)
    config = read_peft_config(folder)
    _require_name(config, checkpoint, base)
    path = folder / WEIGHTS
    arrays = _read_arrays(path, config, base.body)
    try:
        if config.kind == "IA3":
            return _ia3(config, base, arrays)
        return _lora(config, base, arrays)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def base_at(checkpoint: Path, name: str, fingerprint: str) -> AdapterBase:
    """The base that adapters of a checkpoint belong to. fingerprint: of its float encoder."""
    return AdapterBase(name, fingerprint, BodyShape.of_config(read_json(checkpoint / CONFIG_FILE)))


def _require_name(config: PeftConfig, checkpoint: Path, base: AdapterBase) -> None:
    """Raises CheckpointError where the adapter names another model than the checkpoint."""
    if not config.base_name:
        return
    own = read_json(checkpoint / CONFIG_FILE).get("_name_or_path")
    paths = checkpoint.resolve(), PurePath(base.name), PurePath(str(own or base.name))
    names = {_model_name(path) for path in paths}
    if _model_name(PurePath(config.base_name)).casefold() not in {name.casefold() for name in names}:
        raise CheckpointError(
            f"{config.path}: it was trained on {config.base_name!r:.200}, and this encoder is "
            f"{' or '.join(sorted(names))}; if the weights are the same, write that name as "
            "base_model_name_or_path"
        )


def _model_name(path: PurePath) -> str:
    """The last part of a model's path or hub id; of a folder in the hub's cache, that of its hub id."""
    if path.parent.name == "snapshots":
        return path.parent.parent.name.rpartition("--")[2]
    return path.name


def _read_arrays(
    path: Path, config: PeftConfig, body: BodyShape
) -> dict[tuple[int, Role], dict[str, Float32]]:
    """The arrays of each layer by their names here, and in the shapes that PEFT gives them."""
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing; a pickle such as adapter_model.bin may run code and is not read: open it "
            "with PEFT where you trust it, and save it with save_pretrained, which writes safetensors"
        )
    if config.rank > max(body.hidden_size, body.intermediate_size):
        raise CheckpointError(f"{config.path}: r is {config.rank}, more than the base is wide")
    whole = LoraSettings(rank=config.rank, targets=ROLES).shapes(body)
    pooler = 2 * config.rank * body.hidden_size
    limit = HEADER_BYTES + 4 * (pooler + sum(map(math.prod, whole.values())))
    try:
        if path.stat().st_size > limit:
            raise CheckpointError(
                f"{path} has {path.stat().st_size} bytes, more than the {limit} that an adapter of "
                "this base takes"
            )
        tensors = dict(deserialize(path.read_bytes()))  # type: ignore[no-untyped-call]  # untyped library
    except UNREADABLE_ARRAYS as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    arrays: dict[tuple[int, Role], dict[str, Float32]] = {}
    prefixes: set[str] = set()
    for name, tensor in sorted(tensors.items()):
        if POOLER.fullmatch(name):
            continue
        at = NAME.fullmatch(name)
        role = None if at is None else ROLE_AT.get(at["place"])
        if at is None or role is None or int(at["block"]) >= body.layers:
            raise CheckpointError(
                f"{path}: {name[:120]} belongs to no linear layer of the {body.layers} blocks of the base, "
                "and adapters change no other"
            )
        prefixes.add(at["body"] or "")
        slot = int(at["block"]), role
        if config.names_layer(f"{at['body'] or ''}{at['layer']}", slot[0]) is False:
            raise CheckpointError(f"{path}: {name[:120]} is of a layer that target_modules does not name")
        arrays.setdefault(slot, {})[PARTS[at["part"]]] = _array(path, name, tensor)
    if len(prefixes) > 1:
        raise CheckpointError(f"{path}: names of layers begin in several ways, {sorted(prefixes)}")
    _require_targets(path, config, body, arrays, next(iter(prefixes), ""))
    return arrays


def _require_targets(
    path: Path,
    config: PeftConfig,
    body: BodyShape,
    arrays: Mapping[tuple[int, Role], object],
    prefix: str,
) -> None:
    """Raises CheckpointError where the file lacks a layer that the configuration names."""
    for block in range(body.layers):
        for role, place in PATHS.items():
            name = f"{prefix}encoder.layer.{block}.{place}"
            if config.names_layer(name, block) and (block, role) not in arrays:
                raise CheckpointError(f"{path} has nothing for {name}, which target_modules names")
    if not arrays:
        raise CheckpointError(f"{path} changes no layer of the base")


def _array(path: Path, name: str, tensor: Mapping[str, Any]) -> Float32:
    dtype, shape, content = tensor["dtype"], tensor["shape"], tensor["data"]
    if dtype not in NUMBERS:
        raise CheckpointError(
            f"{path}: {name[:120]} has numbers of type {dtype}; it must be one of {[*NUMBERS]}"
        )
    numbers = np.frombuffer(content, NUMBERS[str(dtype)])
    if dtype == "BF16":
        numbers = (numbers.astype(np.uint32) << HIGH_HALF).view(np.float32)
    found: Float32 = numbers.astype(np.float32).reshape(shape)
    return found


def _lora(
    config: PeftConfig, base: AdapterBase, arrays: Mapping[tuple[int, Role], Mapping[str, Float32]]
) -> Adapter:
    settings = LoraSettings(config.rank, config.alpha, config.dropout, _roles(arrays))
    own = {
        f"layers.{block}.{role}.{part}": array
        for (block, role), parts in arrays.items()
        for part, array in parts.items()
    }
    for block, role in arrays:
        halves = [part for part in PARTS.values() if f"layers.{block}.{role}.{part}" in own]
        if halves != ["lora_a", "lora_b"]:
            raise CheckpointError(
                f"block {block} has {halves} for its layer {PATHS[role]}; LoRA has lora_A and lora_B there"
            )
    # A block that the adapter leaves alone has zeros, which change nothing.
    whole = {name: np.zeros(shape, np.float32) for name, shape in settings.shapes(base.body).items()}
    return Adapter(settings, base, {**whole, **own})


def _ia3(
    config: PeftConfig, base: AdapterBase, arrays: Mapping[tuple[int, Role], Mapping[str, Float32]]
) -> Adapter:
    """PEFT scales the input of any layer among feedforward_modules.

    Here that is done at the role `output`. At `attention_output` it equals to scale the output of `value`, as
    attention sums values by weights that are the same for each of their numbers.
    """
    scales: dict[tuple[int, Role], Float32] = {}
    for (block, role), parts in arrays.items():
        if "scale" not in parts:
            raise CheckpointError(
                f"block {block} has {list(parts)} for its layer {PATHS[role]}, which is LoRA"
            )
        scale, of_input = _scale(config, base.body, block, role, parts["scale"])
        slot: tuple[int, Role] = (
            (block, "value") if of_input and role == "attention_output" else (block, role)
        )
        scales[slot] = scales[slot] * scale if slot in scales else scale
    settings = Ia3Settings(_roles(scales))
    whole = {name: np.ones(shape, np.float32) for name, shape in settings.shapes(base.body).items()}
    own = {f"layers.{block}.{role}.scale": scale for (block, role), scale in scales.items()}
    return Adapter(settings, base, {**whole, **own})


def _scale(
    config: PeftConfig, body: BodyShape, block: int, role: Role, scale: Float32
) -> tuple[Float32, bool]:
    """A scale float32[width], and whether it is of the input: its shape is [1, in], and else [out, 1]."""
    wide, out = body.sizes(role)
    name = f"encoder.layer.{block}.{PATHS[role]}"
    of_input = scale.shape == (1, wide)
    if not of_input and scale.shape != (out, 1):
        raise CheckpointError(
            f"{name} has an ia3_l of shape {list(scale.shape)}; the base needs [1, {wide}] or [{out}, 1]"
        )
    if config.feedforward is not None and of_input != any(map(name.endswith, config.feedforward)):
        raise CheckpointError(f"{name} has an ia3_l of shape {list(scale.shape)}, unlike feedforward_modules")
    if of_input != (role == INPUT_SCALED) and not (of_input and role == "attention_output"):
        raise CheckpointError(
            f"{name} has its {'input' if of_input else 'output'} scaled, which is not done here; "
            "feedforward_modules may name attention.output.dense, and must name output.dense where it "
            "is scaled"
        )
    return scale.reshape(-1), of_input


def _roles(slots: Mapping[tuple[int, Role], object]) -> tuple[Role, ...]:
    return tuple(role for role in ROLES if any(role == of_slot for _, of_slot in slots))
