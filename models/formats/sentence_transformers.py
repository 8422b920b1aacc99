"""What a folder of sentence-transformers says of itself, as settings of ours: pooling, length, prompts.

`modules.json` lists the parts that a text goes through: a transformer, pooling, perhaps dense layers, and
perhaps normalization, which all dense vectors here have. https://sbert.net/docs/sentence_transformer/usage/custom_models.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.models.errors import CheckpointError
from tercet.models.files import is_file_name

MODULES_FILE = "modules.json"
PROMPTS_FILE = "config_sentence_transformers.json"
LENGTH_FILE = "sentence_bert_config.json"
# A mean times the root of the length is a mean again once it is normalized.
ROOT_MEAN = "mean_sqrt_len_tokens"
POOLINGS = {"cls": "cls", "mean": "mean", ROOT_MEAN: "mean", "lasttoken": "last"}
ORDER = ("Transformer", "Pooling", "Dense", "Normalize")
OLD_PREFIX = "pooling_mode_"
OLD_NAMES = {
    "cls_token": "cls",
    "max_tokens": "max",
    "mean_tokens": "mean",
    "weightedmean_tokens": "weightedmean",
}
# Which depend on how long vectors are.
SIMILARITIES_OF_LENGTHS = ("dot", "euclidean", "manhattan")
QUERY_PROMPT = "query"
# Which prompt stands before documents: the first of these that there is, or else the default.
DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True, slots=True)
class Module:
    """One part that a text goes through. type: full name of its class; folder: of its files."""

    type: str
    folder: Path

    @property
    def name(self) -> str:
        """The last part of its type."""
        return self.type.rpartition(".")[2]

    @property
    def kind(self) -> str:
        """Its name where it is one of sentence-transformers', else its type in full."""
        return self.name if self.type.startswith("sentence_transformers.") else self.type


@dataclass(frozen=True, slots=True)
class DenseModules:
    """The modules `Dense` that a vector goes through.

    folders: of each, in order; feature: what their configurations call that vector; usual_activation: of one
    whose configuration names none.
    """

    folders: tuple[Path, ...]
    feature: str
    usual_activation: str


def settings_of_modules(folder: Path) -> dict[str, Any]:
    """Keys of `tercet.json` that follow from the files; none where there is no `modules.json`.

    Raises CheckpointError that names what is not read here, since to leave it out would change all vectors.
    """
    path = folder / MODULES_FILE
    if not path.is_file():
        return {}
    modules = modules_in(folder)
    kinds = [module.kind for module in modules]
    wrong = next((module.type for module in modules if module.kind not in ORDER), None)
    in_order = kinds == sorted(kinds, key=ORDER.index) if wrong is None else False
    if not in_order or kinds[:2] != ["Transformer", "Pooling"] or kinds.count("Pooling") > 1:
        listed = wrong or " and ".join(kinds) or "no module"
        raise CheckpointError(
            f"{path}: {listed} is not read here, but a Transformer, a Pooling and perhaps Dense and a "
            "Normalize of sentence-transformers; take another checkpoint, or where the model does without, "
            "remove modules.json and write a tercet.json"
        )
    transformer, pooling = modules[0].folder, modules[1].folder
    require_beside(folder, transformer)
    prompts = prompts_in(folder)
    declared = object_in(folder / PROMPTS_FILE).get("matryoshka_dims")
    return {
        **prompts,
        "pooling": _pooling(
            pooling / "config.json", with_prompts=bool(prompts), with_layers="Dense" in kinds
        ),
        **({} if declared is None else {"matryoshka_dimensions": declared}),
        **length_in(transformer),
    }


def similarity_lost(folder: Path) -> str | None:
    """The similarity that a folder names, where that is another one once vectors have length 1; else None."""
    named = object_in(folder / PROMPTS_FILE).get("similarity_fn_name")
    normalized = "Normalize" in [module.name for module in modules_in(folder)]
    return str(named) if named in SIMILARITIES_OF_LENGTHS and not normalized else None


def dense_after_pooling(folder: Path) -> DenseModules:
    """The modules `Dense` between the pooled state and the dense vector."""
    modules = modules_in(folder)
    pooled = [module.name for module in modules[1:2]] == ["Pooling"]
    folders = tuple(module.folder for module in modules if module.name == "Dense") if pooled else ()
    return DenseModules(folders, "sentence_embedding", "torch.nn.Tanh")


def modules_in(folder: Path) -> list[Module]:
    """The modules that a checkpoint's `modules.json` lists, none where there is no such file.

    Raises CheckpointError where the file is no such list.
    """
    path = folder / MODULES_FILE
    values = json_in(path) if path.is_file() else []
    named = isinstance(values, list) and all(
        isinstance(module, dict) and {"type", "path"} <= set(module) for module in values
    )
    if not named:
        raise CheckpointError(f"{path} must list modules, each with its type and path")
    return [module_of(path, module["type"], module["path"]) for module in values]


def module_of(listing: Path, type: object, path: object) -> Module:
    """A module by what the file that lists it says. Raises CheckpointError for a path out of its folder."""
    relative = Path(str(path))
    if not all(map(is_file_name, relative.parts)):
        raise CheckpointError(f"{listing}: the path {str(path)!r:.80} is not within its folder")
    return Module(str(type), listing.parent / relative)


def require_beside(folder: Path, transformer: Path) -> None:
    """Raises CheckpointError where the transformer of a checkpoint lies in a folder of its own."""
    if transformer.resolve() != folder.resolve():
        raise CheckpointError(
            f"{folder / MODULES_FILE}: the transformer lies in {transformer.name}; move its files to {folder}"
        )


def length_in(folder: Path) -> dict[str, Any]:
    """The longest text that the folder of a transformer names, if any, as a key of `tercet.json`."""
    described = object_in(folder / LENGTH_FILE)
    if described.get("do_lower_case"):
        raise CheckpointError(
            f"{folder / LENGTH_FILE}: do_lower_case is not read here; let the tokenizer's normalizer do that"
        )
    longest = described.get("max_seq_length")
    return {} if longest is None else {"max_length": longest}


def _pooling(path: Path, *, with_prompts: bool, with_layers: bool) -> str:
    if not path.is_file():
        raise CheckpointError(f"{path} is missing, though {MODULES_FILE} names its folder")
    config = object_in(path)
    modes = config.get("pooling_mode")
    if modes is None:  # as releases before 5.4 wrote it, one boolean for each
        switched_on = [
            name.removeprefix(OLD_PREFIX) for name, on in config.items() if name.startswith(OLD_PREFIX) and on
        ]
        modes = [OLD_NAMES.get(name, name) for name in switched_on] or "mean"
    names = modes if isinstance(modes, list) else [modes]
    if len(names) != 1 or not isinstance(names[0], str) or names[0] not in POOLINGS:
        raise CheckpointError(f"{path}: pooling {modes!r} is not read here, but one of {list(POOLINGS)}")
    if with_prompts and not config.get("include_prompt", True):
        raise CheckpointError(
            f"{path}: include_prompt is false, but here prompts are pooled with their texts; take another "
            "checkpoint"
        )
    if with_layers and names[0] == ROOT_MEAN:
        raise CheckpointError(
            f"{path}: pooling {ROOT_MEAN} before a Dense is not read here, but the mean is; take another "
            "checkpoint"
        )
    return POOLINGS[names[0]]


def prompts_in(folder: Path) -> dict[str, str]:
    """The instructions of queries and documents, those that are not empty."""
    path = folder / PROMPTS_FILE
    config = object_in(path)
    prompts: Mapping[str, Any] = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise CheckpointError(f"{path}: prompts is {prompts!r:.80}; an object of texts by name is expected")
    default = config.get("default_prompt_name")
    # That of queries is not one for documents, nor the other way round, though it be the default.
    usual = [] if default in (QUERY_PROMPT, *DOCUMENT_PROMPTS) else [str(default)]

    def first(*names: str) -> str:
        return next((prompts[name] for name in (*names, *usual) if prompts.get(name) is not None), "")

    given = {"query_instruction": first(QUERY_PROMPT), "document_instruction": first(*DOCUMENT_PROMPTS)}
    return {name: prompt for name, prompt in given.items() if prompt}


def object_in(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file; an empty one where there is none."""
    values = json_in(path) if path.is_file() else {}
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a {type(values).__name__}; a JSON object is expected")
    return values


def json_in(path: Path) -> Any:
    """What a JSON file holds. Raises CheckpointError, naming the file, where it cannot be read."""
    if not path.is_file():  # to open a pipe would wait for its other end
        raise CheckpointError(f"{path} cannot be read as JSON: it is no file")
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text)
        if "\\u" in text:  # in which halves of characters may be written, that no file can have again
            json.dumps(values, ensure_ascii=False).encode()
        return values
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}") from error
