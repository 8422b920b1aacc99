"""What folders of PyLate, and those of sentence-transformers' MultiVectorEncoder, say of themselves.

Both list a transformer and dense layers of each token. PyLate writes markers, lengths and expansion into
`config_sentence_transformers.json`; sentence-transformers has prompts there, lengths and expansion with the
transformer, and a module of its own for tokens without vectors.
https://github.com/lightonai/pylate, https://sbert.net/docs/multi_vector_encoder/usage/usage.html
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tercet.models.errors import CheckpointError
from tercet.models.formats.late_interaction import KEY, LateInteraction
from tercet.models.formats.sentence_transformers import (
    LENGTH_FILE,
    MODULES_FILE,
    PROMPTS_FILE,
    DenseModules,
    Module,
    length_in,
    modules_in,
    object_in,
    prompts_in,
    require_beside,
)

PYLATE_DENSE = "pylate.models.Dense.Dense"
TOKENIZER_FILE = "tokenizer_config.json"
FEATURE = "token_embeddings"
KINDS = ("Transformer", "Dense", "MultiVectorMask", "Normalize")
MODEL_TYPES = ("ColBERT", "MultiVectorEncoder")
# PyLate's own, of what a folder does not say.
PYLATE = {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 32, "document_length": 180}
# Keys that only PyLate writes beside prompts.
PYLATE_KEYS = (*PYLATE, "skiplist_words", "do_query_expansion", "attend_to_expansion_tokens")


def is_multi_vector(folder: Path) -> bool:
    """Whether a folder's modules give token vectors."""
    modules = modules_in(folder)
    named = object_in(folder / PROMPTS_FILE).get("model_type") in MODEL_TYPES
    return bool(modules) and (named or [module.name for module in modules[:2]] == ["Transformer", "Dense"])


def settings_of_multi_vector(folder: Path) -> dict[str, Any]:
    """Keys of `tercet.json` that follow from such a folder's files; none for another kind of folder.

    Raises CheckpointError that names the file with what is not read here.
    """
    if not is_multi_vector(folder):
        return {}
    modules = _modules(folder)
    require_beside(folder, modules[0].folder)
    if _is_of_pylate(folder):
        path = folder / PROMPTS_FILE
        settings = _settings_of_pylate(object_in(path))
    else:
        path = folder / LENGTH_FILE
        settings = _settings_of_transformer(object_in(path), path)
    late = {"expansion_token": _expansion_token(folder), **settings.pop(KEY)}
    _require_sound(late, path)
    mask = next((module.folder for module in modules if module.name == "MultiVectorMask"), None)
    if mask is not None:
        late |= _skiplist(mask / "config.json")
        _require_sound(late, mask / "config.json")
    prompts = prompts_in(folder)
    for kind in ("query", "document"):
        name = f"{kind}_instruction"
        if name in prompts:  # later releases write the marker into the prompt, too
            prompts[name] = prompts[name].removeprefix(late.get(f"{kind}_marker", ""))
    given = {name: text for name, text in prompts.items() if text}
    return {"pooling": "none", **length_in(folder), **given, **settings, KEY: late}


def dense_of_tokens(folder: Path) -> DenseModules:
    """The modules `Dense` of each token."""
    modules = _modules(folder) if is_multi_vector(folder) else []
    layers = [module for module in modules if module.name == "Dense"]
    # sentence-transformers takes for PyLate's layers what PyLate does.
    usual = "torch.nn.Identity" if layers and layers[0].type == PYLATE_DENSE else "torch.nn.Tanh"
    return DenseModules(tuple(module.folder for module in layers), FEATURE, usual)


def _require_sound(late: dict[str, Any], path: Path) -> None:
    """Raises CheckpointError that names the file from which something was read that cannot be so."""
    try:
        LateInteraction.from_json(late)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _expansion_token(folder: Path) -> str | None:
    """The mask token, or else that of the end, as both libraries take it; None where neither is named."""
    config = object_in(folder / TOKENIZER_FILE)
    for name in ("mask_token", "eos_token"):
        named = config.get(name)
        piece = named.get("content") if isinstance(named, Mapping) else named
        if isinstance(piece, str):
            return piece
    return None


def _is_of_pylate(folder: Path) -> bool:
    config = object_in(folder / PROMPTS_FILE)
    written = config.get("model_type") == "ColBERT" or any(name in config for name in PYLATE_KEYS)
    return written or any(module.type == PYLATE_DENSE for module in modules_in(folder))


def _modules(folder: Path) -> list[Module]:
    """The modules, of kinds that are read here. Raises CheckpointError."""
    path = folder / MODULES_FILE
    modules = modules_in(folder)
    for module in modules:
        if module.kind not in (*KINDS, PYLATE_DENSE):
            raise CheckpointError(
                f"{path}: {module.type} is not read here in an encoder of token vectors, but "
                f"{', '.join(KINDS)} of sentence-transformers and {PYLATE_DENSE}; take another checkpoint"
            )
    kinds = [module.name for module in modules]
    layers = [kind for kind in kinds if kind in ("Transformer", "Dense", "Normalize")]
    closed = layers[-1:] == ["Normalize"] or _is_of_pylate(folder)  # which normalizes by itself
    ordered = layers == sorted(layers, key=KINDS.index)
    if kinds[:1] != ["Transformer"] or "Dense" not in kinds or not closed or not ordered:
        raise CheckpointError(
            f"{path}: {' and '.join(kinds)} is not read here; an encoder of token vectors has a Transformer, "
            "Dense modules and then a Normalize"
        )
    return modules


def _settings_of_pylate(config: Mapping[str, Any]) -> dict[str, Any]:
    given = {**PYLATE, **{name: value for name, value in config.items() if value is not None}}
    queries = given["query_length"]
    expands = given.get("do_query_expansion", True)
    return {
        "max_length": given["document_length"],
        KEY: {
            "query_marker": given["query_prefix"],
            "document_marker": given["document_prefix"],
            "query_length": queries,
            "expansion_length": queries if expands else None,
            "attend_to_expansion": bool(expands and given.get("attend_to_expansion_tokens")),
            "skiplist": given.get("skiplist_words", list(string.punctuation)),
        },
    }


def _settings_of_transformer(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """config: of the transformer's own file, `path`."""
    expansion = config.get("query_expansion") or {}
    strategy = expansion.get("strategy") if isinstance(expansion, Mapping) else "no object"
    if expansion and strategy not in ("fixed", "min"):
        raise CheckpointError(
            f"{path}: query_expansion {expansion!r:.80} is not read here, but fixed and min"
        )
    length = expansion.get("length")
    queries = length if strategy == "fixed" else config.get("query_length")
    late = {
        "query_length": queries,
        "expansion_length": length,
        **({} if expansion.get("token") is None else {"expansion_token": expansion["token"]}),
        "attend_to_expansion": expansion.get("attend", False),
    }
    documents = config.get("document_length")
    return {**({} if documents is None else {"max_length": documents}), KEY: late}


def _skiplist(path: Path) -> dict[str, Any]:
    """Of a module MultiVectorMask."""
    config = object_in(path)
    if config.get("keep_only_token_ids"):
        raise CheckpointError(f"{path}: keep_only_token_ids is not read here; take another checkpoint")
    types = config.get("skiplist_tasks", ["document"])
    return {
        "skiplist": config.get("skiplist_words") or [],
        "skiplist_types": [types] if isinstance(types, str) else types,
    }
