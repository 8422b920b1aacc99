"""A checkpoint on disk: where its files are, and the settings it encodes with.

Layout as `BAAI/bge-m3`: config.json, tokenizer.json or sentencepiece.bpe.model, weights, `sparse_linear.pt`
and `colbert_linear.pt` (or `heads.safetensors`), each for the side that it is the head of, and optionally
`tercet.json` and `onnx/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from tercet.models.errors import CheckpointError
from tercet.models.formats.late_interaction import KEY as LATE_INTERACTION
from tercet.models.formats.late_interaction import LateInteraction
from tercet.models.formats.multi_vector import settings_of_multi_vector
from tercet.models.formats.peft_config import CONFIG as PEFT_CONFIG
from tercet.models.formats.peft_config import WEIGHTS as PEFT_WEIGHTS
from tercet.models.formats.sentence_transformers import json_in, settings_of_modules
from tercet.models.formats.sparse_modules import settings_of_sparse_modules, transformer_folder
from tercet.models.formats.splade import SpladeSettings
from tercet.models.formats.stanford_colbert import METADATA_FILE, settings_of_stanford
from tercet.models.representations import LexicalKind
from tercet.models.tasks import KEY as TASKS
from tercet.models.tasks import Tasks, settings_of_tasks

Pooling = Literal["cls", "mean", "last", "none"]
JsonObject = dict[str, Any]

SETTINGS_FILE = "tercet.json"
CONFIG_FILE = "config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
DEFAULT_MAX_LENGTH = 512
# RoBERTa counts positions from pad_token_id + 1, so its table holds that many rows no text can use.
OFFSET_POSITION_TYPES = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "data2vec-text"}
    | {"ibert", "longformer", "luke", "mluke", "mpnet", "xmod"}
)
# Under which key a configuration has the width of its hidden states; the second is DistilBERT's.
WIDTH_KEYS = ("hidden_size", "dim")
ENGLISH, MULTILINGUAL = "minilm-m3", "multi-m3"
# Checkpoints that come with the project and go by their names.
SHIPPED = (ENGLISH, MULTILINGUAL)
DEFAULT_CHECKPOINT = MULTILINGUAL
SHIPPED_FOLDER = (Path(__file__).parent.parent / "checkpoints").resolve()
# Settings that are written only where they are otherwise.
LEFT_OUT = (
    ("splade", None),
    ("special_tokens", True),
    ("matryoshka_dimensions", None),
    ("late_interaction", None),
    ("tasks", None),
)
REVISION_MARK = "@"  # between a hub id and its revision; no hub id has one
# What a hub checkpoint may bring: data only, no code, and of pickles only those read with weights_only.
HUB_FILES = (
    "*.json",
    "*.safetensors",
    "pytorch_model*.bin",
    "sparse_linear.pt",
    "colbert_linear.pt",
    "sentencepiece.bpe.model",
    "*_Dense*/pytorch_model.bin",
    METADATA_FILE,
)
HUB_ADAPTER = ("adapter.json", "adapter.safetensors", PEFT_CONFIG, PEFT_WEIGHTS)
# Only beside our own record of an export: other graphs are large and of no use here.
HUB_EXPORT = "onnx/export.json"
HUB_GRAPHS = ("onnx/*",)


@dataclass(frozen=True, slots=True)
class EncodingSettings:
    """How a checkpoint turns text into vectors; the content of `tercet.json`.

    pooling: see `tercet.models.heads.pool`, or `none` for a checkpoint without a dense side; max_length:
    tokens,
    special tokens included; colbert_dimension: must equal the head's, if given; query_instruction,
    document_instruction: put before every text of that type; mcls_every: a CLS at every position divisible by
    it (MCLS); lexical: what suits the sparse head, which new collections take unless told otherwise;
    lower_capitals: whether texts written in capitals are read in small letters; splade: how lexical weights
    come from the head of a masked language model, None where they come from a linear head; special_tokens:
    whether a text stands between special tokens, as all do but those of static embeddings;
    matryoshka_dimensions: to how many values dense vectors may be cut (Kusupati et al. 2022), None where that
    is not said; late_interaction: what checkpoints of the ColBERT family do, None for one that does as
    BGE-M3; tasks: which of the adapters that a checkpoint brings itself texts go through, None for none.
    """

    pooling: Pooling = "cls"
    max_length: int = DEFAULT_MAX_LENGTH
    colbert_dimension: int | None = None
    query_instruction: str = ""
    document_instruction: str = ""
    mcls_every: int | None = None
    lexical: LexicalKind = "plain"
    lower_capitals: bool = False
    splade: SpladeSettings | None = None
    special_tokens: bool = True
    matryoshka_dimensions: Sequence[int] | None = None
    late_interaction: LateInteraction | None = None
    tasks: Tasks | None = None

    def __post_init__(self) -> None:
        if self.pooling not in get_args(Pooling):
            raise CheckpointError(f"pooling is {self.pooling!r}; it must be one of {get_args(Pooling)}")
        if self.lexical not in get_args(LexicalKind):
            raise CheckpointError(f"lexical is {self.lexical!r}; it must be one of {get_args(LexicalKind)}")
        for name, least in (("max_length", 4), ("colbert_dimension", 1), ("mcls_every", 4)):
            value = getattr(self, name)
            if value is None and name != "max_length":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise CheckpointError(f"{name} is {value!r}; it must be a whole number of at least {least}")
        for name in ("query_instruction", "document_instruction"):
            if not isinstance(getattr(self, name), str):
                raise CheckpointError(f"{name} is {getattr(self, name)!r}; it must be a string")
        for name in ("lower_capitals", "special_tokens"):
            if not isinstance(getattr(self, name), bool):
                raise CheckpointError(f"{name} is {getattr(self, name)!r}; it must be true or false")
        if self.lexical == "idf" and self.splade is not None and self.splade.queries == "table":
            raise CheckpointError(
                'lexical is "idf", but queries have their weights from a table, which already says how rare '
                'a term is; take "plain"'
            )
        declared = self.matryoshka_dimensions
        if declared is not None:
            known = isinstance(declared, list | tuple) and all(type(size) is int for size in declared)
            if not (known and declared and min(declared) > 0):
                raise CheckpointError(
                    f"matryoshka_dimensions is {declared!r:.80}; it must be a list of whole numbers above 0"
                )
            object.__setattr__(self, "matryoshka_dimensions", tuple(declared))
        late = self.late_interaction
        if late is not None and max(late.query_length or 0, late.expansion_length or 0) > self.max_length:
            raise CheckpointError(
                f"queries of {late.query_length or late.expansion_length} tokens are longer than max_length, "
                f"{self.max_length}, that of documents; give {SETTINGS_FILE} a max_length that holds both"
            )
        if late is not None and self.mcls_every is not None:
            raise CheckpointError(f"mcls_every does not go with {LATE_INTERACTION}; leave one out")

    def to_json(self) -> JsonObject:
        """All settings as a JSON object; without the newest where they change nothing, as before them."""
        values = asdict(self)
        if self.late_interaction is not None:
            values[LATE_INTERACTION] = self.late_interaction.to_json()
        return {name: value for name, value in values.items() if (name, value) not in LEFT_OUT}

    @property
    def of_representations(self) -> JsonObject:
        """Those that a text's representations follow from: all but what collections are advised to do.

        What came later is left out where it changes nothing, so that older fingerprints stay. Tasks are told
        by the digest of the weights, as they are part of these in a graph.
        """
        left_out = {"lexical", "matryoshka_dimensions", TASKS} | (
            set() if self.lower_capitals else {"lower_capitals"}
        )
        return {name: value for name, value in self.to_json().items() if name not in left_out}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> EncodingSettings:
        """Settings from a JSON object; absent keys take their defaults, unknown keys fail.

        With `splade` there is no dense side unless `pooling` is given.
        Raises CheckpointError for an unknown key or a value out of range.
        """
        known = [field.name for field in fields(EncodingSettings)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise CheckpointError(f"{SETTINGS_FILE} has unknown keys {unknown}; it may have {known}")
        late, splade, tasks = values.get(LATE_INTERACTION), values.get("splade"), values.get(TASKS)
        read: dict[str, Any] = {} if late is None else {LATE_INTERACTION: LateInteraction.from_json(late)}
        if tasks is not None:
            read[TASKS] = Tasks.from_json(tasks)
        if splade is None:
            return EncodingSettings(**{**values, **read})
        read["splade"] = SpladeSettings.from_json(splade)
        return EncodingSettings(**{"pooling": "none", **values, **read})


def read_json(path: Path) -> JsonObject:
    """The JSON object in a file. Raises CheckpointError, naming the file, where there is none."""
    if not path.exists():
        raise CheckpointError(f"{path} is missing; a checkpoint is a folder laid out as BAAI/bge-m3")
    values = json_in(path)
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a {type(values).__name__}; a JSON object is expected")
    return values


def position_limit(config: Mapping[str, Any]) -> int | None:
    """Most tokens the model has positions for, or None where its configuration names no limit."""
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions < 1:
        return None
    return positions - position_offset(config)


def position_offset(config: Mapping[str, Any]) -> int:
    """Rows of the model's table of positions that lie before those of texts."""
    if str(config.get("model_type")) not in OFFSET_POSITION_TYPES:
        return 0
    padding = config.get("pad_token_id")
    return 1 + (padding if type(padding) is int and padding >= 0 else 1)


def hidden_size(folder: Path) -> int:
    """Width of the hidden states. Raises CheckpointError where the model's configuration has none."""
    path = transformer_folder(folder) / CONFIG_FILE
    config = read_json(path)
    width = next((config[key] for key in WIDTH_KEYS if key in config), None)
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise CheckpointError(f"{path}: hidden_size is {width!r}; it must be a whole number of at least 1")
    return width


def logits_size(folder: Path) -> int:
    """V, how many terms a masked language model weighs. Raises CheckpointError where it does not say so."""
    path = transformer_folder(folder) / CONFIG_FILE
    size = read_json(path).get("vocab_size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise CheckpointError(f"{path}: vocab_size is {size!r}; it must be a whole number of at least 1")
    return size


def embedded_tokens(folder: Path) -> int | None:
    """How many tokens a model has a vector for, None where its configuration does not say so."""
    path = transformer_folder(folder) / CONFIG_FILE
    size = read_json(path).get("vocab_size") if path.is_file() else None
    return size if type(size) is int and size > 0 else None


def read_settings(folder: Path, mcls_every: int | None = None) -> EncodingSettings:
    """Encoding settings of a checkpoint: `tercet.json`, and what it leaves out from the model's own files and
    from those of sentence-transformers, PyLate and ColBERT.

    mcls_every: in the place of the checkpoint's own. Raises CheckpointError for unknown keys, a value out of
    range, or a `max_length` past the model's positions.
    """
    transformer = transformer_folder(folder)
    config = read_json(transformer / CONFIG_FILE)
    limit = position_limit(config)
    path = folder / SETTINGS_FILE
    derived = (
        settings_of_sparse_modules(folder)
        or settings_of_multi_vector(folder)
        or settings_of_modules(folder)
        or settings_of_stanford(folder, config)
    )
    own = read_json(path) if path.exists() else {}
    derived |= settings_of_tasks(folder, own)
    declared = {name: config[name] for name in ("matryoshka_dimensions",) if config.get(name) is not None}
    values = {**declared, **derived, **own}
    late, own_late = derived.get(LATE_INTERACTION), own.get(LATE_INTERACTION)
    if late is not None and isinstance(own_late, dict):
        values[LATE_INTERACTION] = {**late, **own_late}
    if mcls_every is not None:
        values["mcls_every"] = mcls_every
    if "max_length" not in values:
        values["max_length"] = _default_max_length(transformer, limit)
    elif "max_length" not in own and limit is not None and isinstance(values["max_length"], int):
        values["max_length"] = min(values["max_length"], limit)
    try:
        settings = EncodingSettings.from_json(values)
    except CheckpointError as error:
        raise CheckpointError(f"{folder}: {error}") from error
    if not settings.special_tokens:
        raise CheckpointError(f"{path}: special_tokens is false, but only static embeddings do without any")
    if limit is not None and settings.max_length > limit:
        raise CheckpointError(
            f"{path}: max_length is {settings.max_length}, but the model has positions for {limit} tokens"
        )
    return settings


def _default_max_length(folder: Path, limit: int | None) -> int:
    path = folder / TOKENIZER_CONFIG
    named = read_json(path).get("model_max_length") if path.exists() else None
    # A tokenizer without a limit of its own writes a huge number here.
    lengths = [limit] if limit is not None else []
    if isinstance(named, int) and 0 < named < 1_000_000:
        lengths.append(named)
    return min(lengths, default=DEFAULT_MAX_LENGTH)


def resolve_checkpoint(name_or_path: str, revision: str | None = None) -> Path:
    """Folder of a checkpoint: one of the shipped ones by its name, a path, or a hub id such as `BAAI/bge-m3`,
    which may end in a revision: `BAAI/bge-m3@main`.

    A hub checkpoint is fetched once into the hub's cache; no code is fetched or run.
    Raises CheckpointError where there is neither such a folder nor such a repository, or a revision is given
    of what is no repository.
    """
    folder = Path(name_or_path).expanduser()
    if name_or_path in SHIPPED:
        folder = SHIPPED_FOLDER / name_or_path
    if name_or_path and folder.is_dir():
        if revision:
            raise CheckpointError(
                f"--revision goes with a hub id, and checkpoint {name_or_path!r} is a folder; leave revision "
                f"{revision!r} out"
            )
        return folder
    if not _is_hub_id(name_or_path):
        raise CheckpointError(
            f"checkpoint {name_or_path!r} is neither one that comes with Tercet ({' or '.join(SHIPPED)}), "
            "nor a folder, nor a hub id such as BAAI/bge-m3"
        )
    return _fetch("checkpoint", name_or_path, revision, HUB_FILES)


def resolve_adapter(name_or_path: str, revision: str | None = None) -> Path:
    """Folder of an adapter: a path, or a hub id, which may end in a revision: `owner/name@main`.

    Raises CheckpointError as `resolve_checkpoint`.
    """
    folder = Path(name_or_path).expanduser()
    if name_or_path and folder.is_dir():
        return folder
    if not _is_hub_id(name_or_path):
        raise CheckpointError(
            f"adapter {name_or_path!r} is neither a folder, nor a hub id such as owner/name"
        )
    return _fetch("adapter", name_or_path, revision, HUB_ADAPTER)


def checkpoint_name(name_or_path: str) -> str:
    """Name to show for a checkpoint: the folder's last part, or the hub id without a revision."""
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return folder.resolve().name
    return name_or_path.partition(REVISION_MARK)[0] if _is_hub_id(name_or_path) else name_or_path


def checkpoint_origin(name_or_path: str, folder: Path) -> str | None:
    """What opens a resolved checkpoint again from any working folder: its own folder's full path, or its hub
    id with the revision that was fetched. None for a shipped one, which its name stands for on any machine.
    """
    if name_or_path in SHIPPED or folder.resolve().parent == SHIPPED_FOLDER:
        return None
    if Path(name_or_path).expanduser().is_dir():
        return str(folder.resolve())
    return f"{checkpoint_name(name_or_path)}{REVISION_MARK}{folder.name}"  # the cache's folders are commits


def opens_by_name(name: str) -> bool:
    """Whether a checkpoint's name alone says where it is: it is a shipped one, or of the hub."""
    return name in SHIPPED or _is_hub_id(name)


def _is_hub_id(name: str) -> bool:
    parts = name.partition(REVISION_MARK)[0].split("/")
    return len(parts) == 2 and all(part and not part.startswith((".", "~")) for part in parts)


def _fetch(kind: str, hub_id: str, revision: str | None, files: Sequence[str]) -> Path:
    """The folder of a repository in the hub's cache, with the files that match."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    repository, _, named = hub_id.partition(REVISION_MARK)
    if revision and named and revision != named:
        raise CheckpointError(
            f"{kind} {hub_id!r} names revision {named!r}, and {revision!r} is given; leave one out"
        )
    revision = revision or named or None

    def fetched(patterns: Sequence[str]) -> Path:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=list(patterns)))

    try:
        folder = fetched(files)
        return fetched((*files, *HUB_GRAPHS)) if (folder / HUB_EXPORT).is_file() else folder
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        at = f" at revision {revision}" if revision else ""
        command = f"hf download {repository}" + (f" --revision {revision}" if revision else "")
        raise CheckpointError(
            f"{kind} {repository!r}{at} could not be fetched from the hub, nor is it in its cache ({error}); "
            f"check the name and the network, or fetch it into the cache with `{command}`, or give a local "
            "folder"
        ) from error
