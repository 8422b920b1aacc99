"""What a folder of sentence-transformers' SparseEncoder says: SPLADE, and queries that need no model.

`modules.json` lists the transformer with the head of a masked language model and a SpladePooling; or a
Router, older an Asym, that sends documents through these and looks queries up in a SparseStaticEmbedding.
https://sbert.net/docs/sparse_encoder/usage/custom_models.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.models.errors import CheckpointError
from tercet.models.formats.sentence_transformers import (
    LENGTH_FILE,
    MODULES_FILE,
    PROMPTS_FILE,
    Module,
    length_in,
    module_of,
    modules_in,
    object_in,
    prompts_in,
)

TRANSFORMERS = ("MLMTransformer", "Transformer")
POOLING, TABLE = "SpladePooling", "SparseStaticEmbedding"
ROUTERS = ("Router", "Asym")
ROUTER_FILES = ("router_config.json", "config.json")  # as it is written now, and as releases before 5 did
MASKED_LANGUAGE_MODEL = "fill-mask"
READ = (
    f"a transformer with {POOLING}, or a Router with {TABLE} for queries and a transformer with {POOLING} "
    "for documents"
)


@dataclass(frozen=True, slots=True)
class SparseModules:
    """Where the parts lie. table: that of queries, None where they go through the transformer, too."""

    transformer: Path
    pooling: Path
    table: Path | None


def sparse_modules(folder: Path) -> SparseModules | None:
    """The parts of a sparse encoder; None where the folder is none of sentence-transformers'.

    Raises CheckpointError that names what is not read here.
    """
    path, modules = folder / MODULES_FILE, modules_in(folder)
    kinds = [module.kind for module in modules]
    if kinds and kinds[0] in ROUTERS:
        _require(path, modules[1:], ())
        return _routed(modules[0].folder)
    if not {POOLING, TABLE, "SparseAutoEncoder", *TRANSFORMERS[:1]} & set(kinds):
        return None
    return SparseModules(*_splade(path, modules), None)


def transformer_folder(folder: Path) -> Path:
    """Where the transformer's files lie: the folder itself, or that of a sparse encoder's part."""
    modules = sparse_modules(folder)
    return folder if modules is None else modules.transformer


def settings_of_sparse_modules(folder: Path) -> dict[str, Any] | None:
    """Keys of `tercet.json` that follow from a sparse encoder's files; None where it is none.

    Raises CheckpointError that names what is not read here.
    """
    modules = sparse_modules(folder)
    if modules is None:
        return None
    config = object_in(modules.pooling / "config.json")
    splade = {
        "pooling": config.get("pooling_strategy", "max"),
        "activation": config.get("activation_function", "relu"),
        "max_terms": object_in(folder / PROMPTS_FILE).get("max_active_dims"),
        "queries": "model" if modules.table is None else "table",
    }
    return {**prompts_in(folder), **length_in(modules.transformer), "pooling": "none", "splade": splade}


def _routed(folder: Path) -> SparseModules:
    path = next(
        (folder / name for name in ROUTER_FILES if (folder / name).is_file()), folder / ROUTER_FILES[0]
    )
    config = object_in(path)
    types, structure = config.get("types"), config.get("structure")
    if not isinstance(types, dict) or not isinstance(structure, dict):
        raise CheckpointError(f"{path} must have the types of a router's modules and their structure")
    routes = {
        route: [module_of(path, types.get(str(part)), part) for part in parts]
        for route, parts in structure.items()
        if isinstance(parts, list)
    }
    if set(routes) != {"query", "document"}:
        raise CheckpointError(f"{path} has routes {sorted(routes)}; it must have query and document")
    (table,) = _require(path, routes["query"], (TABLE,))
    return SparseModules(*_splade(path, routes["document"]), table)


def _splade(path: Path, modules: Sequence[Module]) -> tuple[Path, Path]:
    """The folders of the transformer and of its pooling."""
    kind = modules[0].kind if modules and modules[0].kind in TRANSFORMERS else TRANSFORMERS[0]
    transformer, pooling = _require(path, modules, (kind, POOLING))
    task = object_in(transformer / LENGTH_FILE).get("transformer_task")
    if task not in (MASKED_LANGUAGE_MODEL, *([None] if kind == TRANSFORMERS[0] else [])):
        raise CheckpointError(
            f"{transformer / LENGTH_FILE}: transformer_task is {task!r}, but {POOLING} needs the logits of "
            f"{MASKED_LANGUAGE_MODEL!r}"
        )
    return transformer, pooling


def _require(path: Path, modules: Sequence[Module], kinds: Sequence[str]) -> list[Path]:
    """The folders of modules that must be of these kinds."""
    listed = [module.kind for module in modules]
    if listed != list(kinds):
        wrong = " and ".join(listed) or "no module"
        raise CheckpointError(f"{path}: {wrong} is not read here, but {READ}; take another checkpoint")
    return [module.folder for module in modules]
