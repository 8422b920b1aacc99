"""The flags that say how a new collection is made, and the settings that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from tercet.cli import options
from tercet.cli.fields import parse_fields
from tercet.index.dense.kinds import DenseKind
from tercet.index.token_codecs import TokenCodec
from tercet.service.settings.roles import Panel

if TYPE_CHECKING:
    from tercet.ingest.target import RequestedSettings


@dataclass(frozen=True, kw_only=True)
class NewCollectionFlags:
    """What a collection keeps from its first build on."""

    PANEL: ClassVar = Panel.COLLECTION
    dense_kind: Annotated[
        DenseKind | None,
        typer.Option(
            help="Dense index of a new collection. [default auto: by size and memory]", show_default=False
        ),
    ] = None
    dense_memory_gib: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="With auto: GiB for dense vectors and graphs; where they take more, ivfrabitq is built. "
            "[default half of the memory]",
            show_default=False,
        ),
    ] = None
    token_codec: Annotated[
        TokenCodec | None,
        typer.Option(
            help="Token vectors of a new collection. residual1, 2 and 4 keep so many bits of each value, "
            "and learn a codebook from the source first; sign keeps one bit, without learning. [default "
            "int8]",
            show_default=False,
        ),
    ] = None
    token_pooling: options.TokenPooling = None
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:TYPE",
            help="Metadata field to filter on in a new collection: keyword, integer, number, boolean or "
            "datetime. Give it once per field.",
            show_default=False,
            rich_help_panel=Panel.COMMON,
        ),
    ] = None
    partitioned: Annotated[
        bool,
        typer.Option(
            "--partitioned",
            help="Place the documents of a new collection by their field partition, such as a tenant: over "
            "shards a search of one partition asks one shard.",
        ),
    ] = False
    title: Annotated[
        str | None,
        typer.Option(help="What people call a new collection, any text.", show_default=False),
    ] = None
    lexical: options.Lexical = None
    bm25: options.Bm25 = False
    bm25_language: options.Bm25Language = None
    window_tokens: options.WindowTokens = None
    window_overlap: options.WindowOverlap = None
    no_windows: options.NoWindows = False

    def settings(self) -> RequestedSettings:
        """None where not given. Raises typer.BadParameter."""
        return {
            "dense_kind": self.dense_kind,
            "dense_memory_bytes": None
            if self.dense_memory_gib is None
            else round(self.dense_memory_gib * 2**30),
            "token_codec": self.token_codec,
            "token_pooling": self.token_pooling,
            "fields": parse_fields(self.field) if self.field else None,
            "partitioned": self.partitioned or None,
            "title": self.title,
            "lexical": self.lexical,
            "bm25": self.bm25 or None,
            "bm25_language": options.bm25_language(self.bm25_language, bm25=self.bm25),
            "window": options.window_from(self.window_tokens, self.window_overlap, none=self.no_windows),
        }
