"""An adapter on disk: a folder with `adapter.json` and `adapter.safetensors`. No pickle, no code, no paths.

Each file is replaced in one step, `adapter.json` last; it holds the other's sha256, so a folder is whole or
refused, whenever its writing was cut off. A folder without `adapter.json` is no adapter.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load, save

from tercet.models.adapters.blocks import BodyShape
from tercet.models.adapters.kinds import settings_from_disk, settings_json
from tercet.models.adapters.record import HEAD_PREFIX, Adapter, AdapterBase
from tercet.models.adapters.settings import StackSettings, require_adapter_name
from tercet.models.checkpoint import JsonObject, read_json
from tercet.models.errors import CheckpointError
from tercet.models.files import UNREADABLE_ARRAYS, replace_file
from tercet.models.formats.peft_config import CONFIG as PEFT_CONFIG
from tercet.models.weights.head_weights import HeadWeights

RECORD_FILE = "adapter.json"
TENSORS_FILE = "adapter.safetensors"
ROUTER_FILE = "router.json"
FORMAT_VERSION = 1
KEYS = {"format_version", "kind", "settings", "base", "heads", "tensors_sha256"}
TAGS = ("description", "language", "domain")
OPTIONAL_KEYS = {*TAGS, "below"}
BASE_KEYS = {"name", "fingerprint", "layers", "hidden_size", "intermediate_size"}


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter, in our form or in PEFT's."""
    return any((folder / name).is_file() for name in (RECORD_FILE, PEFT_CONFIG))


def is_peft_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter in PEFT's form alone."""
    return not (folder / RECORD_FILE).is_file() and (folder / PEFT_CONFIG).is_file()


def write_adapter(folder: Path, adapter: Adapter) -> None:
    """Writes an adapter, replacing one that is there. The folder's last part is the adapter's name.

    Raises CheckpointError where that does not match [a-z0-9][a-z0-9_-]{0,63}, or where a router or one of
    PEFT's is there.
    """
    require_adapter_name(folder.name)
    if (folder / ROUTER_FILE).exists():
        raise CheckpointError(f"{folder} holds a router; choose another name")
    if is_peft_adapter(folder):
        raise CheckpointError(f"{folder} holds an adapter of PEFT's; choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    tensors = None if isinstance(adapter.settings, StackSettings) else save(adapter.tensors())
    if tensors is not None:
        replace_file(folder / TENSORS_FILE, tensors)
    record = json.dumps(_record(adapter, tensors), indent=2, ensure_ascii=False)
    replace_file(folder / RECORD_FILE, f"{record}\n".encode())
    if tensors is None:
        (folder / TENSORS_FILE).unlink(missing_ok=True)


def read_adapter(folder: Path) -> Adapter:
    """The adapter in a folder, every value checked. Raises CheckpointError naming the file at fault."""
    path = folder / RECORD_FILE
    if is_peft_adapter(folder):
        raise CheckpointError(
            f"{folder} holds an adapter of PEFT's, which does not say the fingerprint of its base; "
            "make it one of ours with `tercet adapters import BASE FOLDER --output NEW`"
        )
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; an adapter is a folder with {RECORD_FILE}, {TENSORS_FILE}")
    record = read_json(path)
    _check_keys(record, path)
    try:
        settings = settings_from_disk(record["kind"], _object(record, "settings"))
        base = _object(record, "base")
        if base.keys() != BASE_KEYS or not all(isinstance(base[key], str) for key in ("name", "fingerprint")):
            raise CheckpointError(f"base must have {sorted(BASE_KEYS)}, name and fingerprint as strings")
        shape = BodyShape(base["layers"], base["hidden_size"], base["intermediate_size"])
        tags = {key: record[key] for key in TAGS if key in record}
        if not all(isinstance(tag, str) for tag in tags.values()) or not isinstance(record["heads"], bool):
            raise CheckpointError(f"{sorted(TAGS)} must be strings, and heads true or false")
        below = record.get("below", [])
        if not isinstance(below, list) or not all(isinstance(digest, str) for digest in below):
            raise CheckpointError(f"below is {below!r}; it must be a list of digests")
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    arrays, heads = _read_tensors(folder, record, shape)
    try:
        origin = AdapterBase(base["name"], base["fingerprint"], shape)
        return Adapter(settings, origin, arrays, heads, tuple(below), **tags)
    except CheckpointError as error:
        raise CheckpointError(f"{folder / TENSORS_FILE}: {error}") from error


def _record(adapter: Adapter, tensors: bytes | None) -> JsonObject:
    body = adapter.base.body
    optional = {"below": list(adapter.below), **{key: getattr(adapter, key) for key in TAGS}}
    return {
        "format_version": FORMAT_VERSION,
        "kind": adapter.kind,
        "settings": settings_json(adapter.settings),
        "base": {
            "name": adapter.base.name,
            "fingerprint": adapter.base.fingerprint,
            "layers": body.layers,
            "hidden_size": body.hidden_size,
            "intermediate_size": body.intermediate_size,
        },
        "heads": adapter.heads is not None,
        "tensors_sha256": None if tensors is None else hashlib.sha256(tensors).hexdigest(),
        **{key: value for key, value in optional.items() if value},
    }


def _check_keys(record: JsonObject, path: Path) -> None:
    version = record.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise CheckpointError(f"{path} has format version {version!r}; this release reads {FORMAT_VERSION}")
    missing, unknown = sorted(KEYS - record.keys()), sorted(record.keys() - KEYS - OPTIONAL_KEYS)
    if missing or unknown:
        raise CheckpointError(f"{path}: keys missing: {missing}, unknown: {unknown}; save the adapter again")


def _object(record: JsonObject, key: str) -> dict[str, Any]:
    value = record[key]
    if not isinstance(value, dict):
        raise CheckpointError(f"{key} is {value!r}; it must be an object")
    return value


def _read_tensors(
    folder: Path, record: JsonObject, shape: BodyShape
) -> tuple[dict[str, Any], HeadWeights | None]:
    """The arrays of the adapter's own, and its heads where it has some."""
    if record["kind"] == StackSettings.kind:
        return {}, None
    path = folder / TENSORS_FILE
    try:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != record["tensors_sha256"]:
            raise CheckpointError(
                f"{path} has sha256 {digest}, not {record['tensors_sha256']} as {RECORD_FILE} says: it is "
                "damaged, or its writing was cut off; save the adapter again"
            )
        arrays = load(content)
    except UNREADABLE_ARRAYS as error:
        raise CheckpointError(f"{path} cannot be read: {error}; save the adapter again") from error
    heads = {name: arrays.pop(name) for name in list(arrays) if name.startswith(HEAD_PREFIX)}
    if bool(heads) != record["heads"]:
        raise CheckpointError(
            f"{path}: {RECORD_FILE} says heads {record['heads']}, but the file has {list(heads)}"
        )
    if not heads:
        return arrays, None
    named = {name.removeprefix(HEAD_PREFIX): array for name, array in heads.items()}
    return arrays, HeadWeights.from_arrays(named, str(path), shape.hidden_size)
