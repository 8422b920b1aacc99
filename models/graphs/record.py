"""The exported graphs of a checkpoint: `onnx/export.json` and what it says about the files beside it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tercet.models.checkpoint import SETTINGS_FILE, EncodingSettings, JsonObject, read_json
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.files import is_file_name, replace_file
from tercet.models.fingerprint import file_digest, has_weights, json_digest, weights_digest
from tercet.models.formats.peft_config import CONFIG, WEIGHTS
from tercet.models.tasks import KINDS, Tasks

FOLDER = "onnx"
EXPORT_FILE = "export.json"
FORMAT = 1
OPTIONAL = ("adapter", "splade")  # keys of the record that are left out where they have nothing to say
GRAPH_FILES = {"float32": "model.onnx", "int8": "model_int8.onnx"}


@dataclass(frozen=True, slots=True)
class Graph:
    """One exported graph. file: its name; files: sha256 of it and of its external data, by name."""

    file: str
    files: dict[str, str]
    differences: dict[str, float]


@dataclass(frozen=True, slots=True)
class Export:
    """What the graphs of a checkpoint were made from.

    weights, heads: sha256 of the checkpoint's; pooling, mcls_every: settings that the graphs have built in;
    graphs: by precision; adapter: digest of the adapter that they have built in, with its heads, or None;
    splade: what they have built in of SPLADE, or None.
    """

    weights: str
    heads: str
    pooling: str
    mcls_every: int | None
    graphs: dict[str, Graph]
    adapter: str | None = None
    splade: JsonObject | None = None

    def same_base(self, other: Export) -> bool:
        """Whether both come from the same weights, heads and built-in settings."""
        mine = (self.weights, self.heads, self.pooling, self.mcls_every, self.splade)
        return mine == (other.weights, other.heads, other.pooling, other.mcls_every, other.splade)

    def same_source(self, other: Export) -> bool:
        """Whether both come from the same base and the same adapter."""
        return self.same_base(other) and self.adapter == other.adapter


def has_export(folder: Path) -> bool:
    """Whether a checkpoint folder holds exported graphs."""
    return (folder / FOLDER / EXPORT_FILE).is_file()


def read_export(folder: Path) -> Export:
    """The export record of a checkpoint folder. Raises CheckpointError where missing or not understood."""
    path = folder / FOLDER / EXPORT_FILE
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing: this checkpoint has no exported graph; make one with "
            "`tercet export CHECKPOINT --output FOLDER`, or use the torch engine"
        )
    values = read_json(path)
    if values.get("format") != FORMAT:
        raise CheckpointError(f"{path} has format {values.get('format')!r}; this version reads {FORMAT}")
    try:
        graphs = {
            precision: Graph(graph["file"], dict(graph["files"]), dict(graph["differences"]))
            for precision, graph in values["graphs"].items()
        }
        source = {name: values[name] for name in ("weights", "heads", "pooling", "mcls_every")}
        source |= {name: values.get(name) for name in OPTIONAL}
        if not all(graph.file in graph.files for graph in graphs.values()):
            raise ValueError("a graph has no checksum")
        return Export(graphs=graphs, **source)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{path} lacks or misnames a key ({error}); export the checkpoint again"
        ) from error


def write_export(folder: Path, export: Export) -> None:
    """Writes the export record of a checkpoint folder."""
    values: JsonObject = {"format": FORMAT, **asdict(export)}
    for name in OPTIONAL:
        if values[name] is None:
            del values[name]
    text = json.dumps(values, indent=2, sort_keys=True) + "\n"
    replace_file(folder / FOLDER / EXPORT_FILE, text.encode())


def packed_graph(folder: Path) -> Graph | None:
    """The int8 graph that stands for the weights of a folder without weight files, or None.

    Raises CheckpointError where the export record is damaged.
    """
    if has_weights(folder) or not has_export(folder):
        return None
    return read_export(folder).graphs.get("int8")


def _task_digests(folder: Path, tasks: Tasks) -> dict[str, str]:
    """sha256 of the files of the adapters of queries and documents."""
    return {
        f"{kind} {name}": file_digest(folder / getattr(tasks, kind) / name)
        for kind in KINDS
        for name in (CONFIG, WEIGHTS)
    }


def body_digest(folder: Path, tasks: Tasks | None = None) -> str:
    """sha256 over a body's weight files, also where only the int8 graph made from them is left, and over the
    adapters of its tasks.

    Raises CheckpointError where the folder has neither.
    """
    own = weights_digest(folder) if packed_graph(folder) is None else read_export(folder).weights
    return own if tasks is None else json_digest({"weights": own, "tasks": _task_digests(folder, tasks)})


def choose_graph(export: Export, precision: str | None, device: str) -> tuple[str, Graph]:
    """The graph of a precision; by default int8 on a CPU and float32 on CUDA, as far as exported."""
    preferred = ("float32", "int8") if device == "cuda" else ("int8", "float32")
    wanted = (precision,) if precision is not None else preferred
    for name in wanted:
        if name in export.graphs:
            return name, export.graphs[name]
    raise UnsupportedError(
        f"precision {precision!r} has no exported graph; there is {sorted(export.graphs)}, "
        "and `tercet export` makes float32 and, with --int8, int8"
    )


def verify_graph(folder: Path, graph: Graph) -> Path:
    """Path of a graph whose files are all as exported. Raises CheckpointError naming one that is not."""
    for name, expected in graph.files.items():
        path = folder / FOLDER / name
        if not is_file_name(name) or not path.is_file():
            raise CheckpointError(f"{path} is missing; export the checkpoint again")
        if file_digest(path) != expected:
            raise CheckpointError(
                f"{path} is damaged or was changed after its export; export the checkpoint again"
            )
    return folder / FOLDER / graph.file


def check_settings(folder: Path, export: Export, settings: EncodingSettings, heads: str) -> None:
    """Raises CheckpointError where settings or heads changed after the export, which has them built in."""
    path = folder / FOLDER / EXPORT_FILE
    if (export.pooling, export.mcls_every) != (settings.pooling, settings.mcls_every):
        raise CheckpointError(
            f"{path}: exported with pooling {export.pooling!r} and mcls_every {export.mcls_every}, but "
            f"tercet.json says {settings.pooling!r} and {settings.mcls_every}; export the checkpoint again"
        )
    splade = None if settings.splade is None else settings.splade.of_graph
    if export.splade != splade:
        raise CheckpointError(
            f"{path}: exported with splade {export.splade}, but {SETTINGS_FILE} says {splade}; export the "
            "checkpoint again"
        )
    if export.heads != heads:
        raise CheckpointError(f"{path}: the heads beside it were changed after the export; export again")


def remove_export(folder: Path) -> None:
    """Removes the export record of a checkpoint folder, if any, which then has no graph to run."""
    (folder / FOLDER / EXPORT_FILE).unlink(missing_ok=True)
