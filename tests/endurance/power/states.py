"""Folders of a real disk, and of a model of one."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.endurance.power.disk import Tree


def write_tree(tree: Tree, folder: Path) -> None:
    """Makes files and folders."""
    for name, entry in tree.items():
        if isinstance(entry, dict):
            (folder / name).mkdir()
            write_tree(entry, folder / name)
        else:
            (folder / name).write_bytes(entry)


def read_tree(folder: Path) -> Tree:
    """Files and folders that are there."""
    return {
        path.name: read_tree(path) if path.is_dir() else path.read_bytes()
        for path in sorted(folder.iterdir())
    }


def assert_same(model: Tree, real: Tree) -> None:
    """The model went where the disk did: but for the index of the ledger's log, which is mapped memory."""
    model, real = _flat(model), _flat(real)
    assert model.keys() == real.keys(), model.keys() ^ real.keys()
    different = [name for name in model if model[name] != real[name] and not name.endswith("-shm")]
    assert not different, different


def _flat(tree: Tree, prefix: str = "") -> Tree:
    flat: Tree = {}
    for name, entry in tree.items():
        flat |= _flat(entry, f"{prefix}{name}/") if isinstance(entry, dict) else {f"{prefix}{name}": entry}
    return flat


def digest_of(tree: Tree) -> bytes:
    digest = hashlib.sha256()
    for name, entry in tree.items():
        content = digest_of(entry) if isinstance(entry, dict) else entry
        digest.update(f"{name}\0{len(content)}\0{isinstance(entry, dict)}\0".encode() + content)
    return digest.digest()
