"""Options that several commands share, and what they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast, get_args

import typer

from tercet.index.token_codecs import LARGEST_POOLING
from tercet.service.settings.roles import Panel

if TYPE_CHECKING:
    from tercet.index.bm25.languages import Bm25Language as Language
    from tercet.index.windows.settings import WindowChoice
    from tercet.service.settings.settings import Settings


def collection_names(incomplete: str) -> list[str]:
    """Collections in the data root that shells offer where a name begins so."""
    from tercet.index.collection import list_collections

    return [
        name for name in list_collections(collections_root(settings_from())) if name.startswith(incomplete)
    ]


Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the collection.", autocompletion=collection_names),
]
OfCollection = Annotated[
    str,
    typer.Option(
        "--collection", help="Name of the collection, which must exist.", autocompletion=collection_names
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Data root with collections/ below it. [TERCET_DATA, default data]",
        show_default=False,
        rich_help_panel=Panel.COMMON,
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        help="Encoder of what is new: multi-m3, minilm-m3, a folder, or a hub id; a collection has its own. "
        "[TERCET_CHECKPOINT, default multi-m3]",
        show_default=False,
        rich_help_panel=Panel.COMMON,
    ),
]
Heads = Annotated[
    str | None,
    typer.Option(
        help="A checkpoint whose sparse and ColBERT heads take the place of the encoder's own: a folder or a "
        "hub id, of the same width. [TERCET_HEADS]",
        show_default=False,
    ),
]
MclsEvery = Annotated[
    int | None,
    typer.Option(
        min=4,
        help="A CLS at every so many tokens of a text, and the mean of their states as its dense vector "
        "(MCLS), whatever the checkpoint was trained with. [TERCET_MCLS_EVERY]",
        show_default=False,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help="What runs the encoder: native, onnxruntime, torch, or onnx, which is native where it can be, "
        "else onnxruntime. [TERCET_ENGINE, default onnx]",
        show_default=False,
    ),
]
Revision = Annotated[
    str | None, typer.Option(help="Revision of a checkpoint named by hub id.", show_default=False)
]
Device = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda, cuda:1. [TERCET_DEVICE]", show_default=False)
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Encoder threads; by default the CPUs that it may use.", show_default=False),
]
Adapter = Annotated[
    str | None,
    typer.Option(
        help="Adapter or router of the encoder, by its name; a fixed router as NAME or NAME:TAG.",
        show_default=False,
        rich_help_panel=Panel.ENCODER,
    ),
]
Lexical = Annotated[
    Literal["plain", "idf"] | None,
    typer.Option(
        help="Lexical weights of a new collection's queries: as encoded, or times the collection's idf. "
        "[default: what the checkpoint recommends]",
        show_default=False,
    ),
]
Bm25 = Annotated[
    bool,
    typer.Option(
        "--bm25",
        help="Give a new collection a fourth side, BM25, for searches that weigh it.",
        rich_help_panel=Panel.COMMON,
    ),
]
Bm25Language = Annotated[
    str | None,
    typer.Option(
        metavar="LANGUAGE",
        help="With --bm25: language whose stems words in its script have, such as german; or none. "
        "[default english]",
        show_default=False,
    ),
]
TokenPooling = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=LARGEST_POOLING,
        help="How many tokens of a document share one token vector in a new collection. [default 1]",
        show_default=False,
    ),
]
WindowTokens = Annotated[
    int | None,
    typer.Option(
        help="Encode a new collection's long documents in windows of at most so many tokens, special tokens "
        "included. [default: as many as the encoder reads]",
        show_default=False,
    ),
]
WindowOverlap = Annotated[
    int | None,
    typer.Option(
        help="Tokens that neighbouring windows share. [default: a quarter of a window]", show_default=False
    ),
]
NoWindows = Annotated[
    bool, typer.Option("--no-windows", help="Cut a new collection's long documents at the encoder's limit.")
]
Adapters = Annotated[
    Path | None,
    typer.Option(
        help="Folder of adapters. [TERCET_ADAPTERS, default adapters/ below the data root]",
        show_default=False,
    ),
]
Rerankers = Annotated[
    Path | None,
    typer.Option(
        help="Folder of re-rankers. [TERCET_RERANKERS, default rerankers/ below the data root]",
        show_default=False,
        rich_help_panel=Panel.ENCODER,
    ),
]
ProgressKind = Literal["auto", "bar", "lines", "json", "none"]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


@dataclass(frozen=True, kw_only=True)
class EncoderFlags:
    """What every command takes that encodes: where things lie, and the encoder and what runs it."""

    PANEL: ClassVar = Panel.ENCODER
    data: Data = None
    adapters: Adapters = None
    checkpoint: Checkpoint = None
    engine: Engine = None
    revision: Revision = None
    heads: Heads = None
    mcls_every: MclsEvery = None
    device: Device = None
    threads: Threads = None

    def settings(self, **others: object) -> Settings:
        """Settings with these flags and others, where given, over the environment and tercet.toml."""
        return settings_from(**asdict(self), **others)


def settings_from(**given: object) -> Settings:
    """Settings with these flags, where given, over the environment and tercet.toml."""
    from tercet.service.settings.reading import load_settings

    return load_settings(given)


def window_from(tokens: int | None, overlap: int | None, *, none: bool) -> WindowChoice:
    """The windows that three flags ask for. Raises typer.BadParameter."""
    from tercet.index.windows.settings import WindowSettings, default_overlap

    if none:
        if tokens is not None or overlap is not None:
            raise typer.BadParameter("goes without --window-tokens", param_hint="--no-windows")
        return False
    if tokens is None:
        if overlap is not None:
            raise typer.BadParameter("give --window-tokens too", param_hint="--window-overlap")
        return None
    try:
        return WindowSettings(tokens, default_overlap(tokens) if overlap is None else overlap)
    except ValueError as error:
        hint = "--window-overlap" if "overlap" in str(error) else "--window-tokens"
        raise typer.BadParameter(str(error), param_hint=hint) from error


@contextmanager
def window_flags() -> Iterator[None]:
    """Names the flag where an encoder does not take the windows that were asked for."""
    from tercet.models.errors import UnsupportedWindowError

    try:
        yield
    except UnsupportedWindowError as error:
        raise UnsupportedWindowError(error.setting, error.problem, f"--window-{error.setting}") from error


def collections_root(settings: Settings) -> Path:
    """The folder of all collections."""
    return settings.data / "collections"


def bm25_language(name: str | None, *, bm25: bool) -> Language | None:
    """The language of that name. Raises typer.BadParameter for one that is not known, or without BM25."""
    from tercet.index.bm25.languages import Bm25Language as Known

    if name is None:
        return None
    if not bm25:
        raise typer.BadParameter("goes with --bm25", param_hint="--bm25-language")
    if name not in get_args(Known):
        raise typer.BadParameter(
            f"{name!r} is not one of {', '.join(get_args(Known))}", param_hint="--bm25-language"
        )
    return cast("Language", name)
