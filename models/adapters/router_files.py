"""A router on disk: a folder beside the adapters with `router.json` and, where learned, `router.safetensors`.

Written as an adapter is: each file in one step, `router.json` last, with the other's sha256.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load, save

from tercet.models.adapters.files import ROUTER_FILE, is_adapter
from tercet.models.adapters.routers import Router, RouterBase, router_json, router_settings
from tercet.models.adapters.settings import is_adapter_name
from tercet.models.checkpoint import JsonObject, read_json
from tercet.models.errors import CheckpointError
from tercet.models.files import UNREADABLE_ARRAYS, replace_file
from tercet.models.representations import Float32

TENSORS_FILE = "router.safetensors"
FORMAT_VERSION = 1
KEYS = {"format_version", "kind", "settings", "base", "tensors_sha256"}
OPTIONAL_KEYS = {"description"}
BASE_KEYS = {"name", "fingerprint"}


def router_names(root: Path | None) -> list[str]:
    """The names of all routers below a folder, in order; none where there is no such folder."""
    if root is None or not root.is_dir():
        return []
    return sorted(
        path.name for path in root.iterdir() if is_adapter_name(path.name) and (path / ROUTER_FILE).is_file()
    )


def write_router(folder: Path, router: Router) -> None:
    """Writes a router, replacing one that is there. The folder's last part is the router's name.

    Raises CheckpointError where that is no name, or the name of an adapter.
    """
    if not is_adapter_name(folder.name):
        raise CheckpointError(
            f"router name {folder.name[:80]!r} does not match [a-z0-9][a-z0-9_-]{{0,63}}; choose another"
        )
    _require_no_adapter(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = save(dict(router.arrays)) if router.arrays else None
    if tensors is not None:
        replace_file(folder / TENSORS_FILE, tensors)
    record = json.dumps(_record(router, tensors), indent=2, ensure_ascii=False)
    replace_file(folder / ROUTER_FILE, f"{record}\n".encode())
    if tensors is None:
        (folder / TENSORS_FILE).unlink(missing_ok=True)


def read_router(folder: Path) -> Router:
    """The router in a folder, every value checked. Raises CheckpointError naming the file at fault."""
    _require_no_adapter(folder)
    path = folder / ROUTER_FILE
    record = read_json(path)
    version = record.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise CheckpointError(f"{path} has format version {version!r}; this release reads {FORMAT_VERSION}")
    missing, unknown = sorted(KEYS - record.keys()), sorted(record.keys() - KEYS - OPTIONAL_KEYS)
    if missing or unknown:
        raise CheckpointError(f"{path}: keys missing: {missing}, unknown: {unknown}; write the router again")
    try:
        if not isinstance(record["settings"], dict):
            raise CheckpointError(f"settings is {record['settings']!r}; it must be an object")
        settings = router_settings(record["kind"], record["settings"])
        base = _base(record["base"])
        description = record.get("description", "")
        if not isinstance(description, str):
            raise CheckpointError("description must be a string")
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    arrays = _read_tensors(folder, record["tensors_sha256"])
    try:
        return Router(settings, base, arrays, description)
    except CheckpointError as error:
        raise CheckpointError(f"{folder / (TENSORS_FILE if arrays else ROUTER_FILE)}: {error}") from error


def _record(router: Router, tensors: bytes | None) -> JsonObject:
    base = router.base
    return {
        "format_version": FORMAT_VERSION,
        "kind": router.kind,
        "settings": router_json(router.settings),
        "base": None if base is None else {"name": base.name, "fingerprint": base.fingerprint},
        "tensors_sha256": None if tensors is None else hashlib.sha256(tensors).hexdigest(),
        **({"description": router.description} if router.description else {}),
    }


def _base(value: Any) -> RouterBase | None:
    if value is None:
        return None
    if (
        not isinstance(value, dict)
        or value.keys() != BASE_KEYS
        or not all(isinstance(part, str) for part in value.values())
    ):
        raise CheckpointError(f"base must be null, or have {sorted(BASE_KEYS)} as strings")
    return RouterBase(value["name"], value["fingerprint"])


def _read_tensors(folder: Path, expected: object) -> dict[str, Float32]:
    """The arrays of the file with this sha256; none where it is None."""
    if expected is None:
        return {}
    path = folder / TENSORS_FILE
    try:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != expected:
            raise CheckpointError(
                f"{path} has sha256 {digest}, not {expected} as {ROUTER_FILE} says: it is damaged, or its "
                "writing was cut off; learn the router again"
            )
        return dict(load(content))
    except UNREADABLE_ARRAYS as error:
        raise CheckpointError(f"{path} cannot be read: {error}; learn the router again") from error


def _require_no_adapter(folder: Path) -> None:
    if is_adapter(folder):
        raise CheckpointError(f"{folder} holds an adapter; an adapter and a router need two names")
