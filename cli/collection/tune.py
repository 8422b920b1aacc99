"""`tercet collection tune`: how wide a collection's dense searches look, for a wanted recall."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tercet.cli import options
from tercet.cli.embed import read_texts
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, print_json

if TYPE_CHECKING:
    from tercet.index.catalog.effort import DenseEffort
    from tercet.index.collection import Collection
    from tercet.index.tuning import MeasuredEffort
    from tercet.models.representations import Float32
    from tercet.service.settings.settings import Settings


@with_flag_groups
def tune(
    name: options.Name,
    recall: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Share of the k nearest that is to be found, on average.")
    ] = 0.98,
    k: Annotated[int, typer.Option("--k", min=1, max=10_000, help="How many nearest documents.")] = 200,
    queries: Annotated[int, typer.Option(min=1, max=100_000, help="How many queries at most.")] = 200,
    file: Annotated[
        Path | None,
        typer.Option(
            help='Queries to encode, a {"text": …} a line. [default: stored vectors with noise]',
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Chooses stored vectors and noise.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report only, store nothing.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Remove what was stored.")] = False,
    *,
    encoding: options.EncoderFlags,
    as_json: options.AsJson = False,
) -> None:
    """Find the least efSearch or nprobe for a wanted recall, and store it as the collection's default.

    Searches that give search_options of their own keep them. A server that has the collection goes on; its
    next search takes what was stored.
    """
    from tercet.index.collection import Collection
    from tercet.index.errors import NothingToTuneError

    if reset and (dry_run or file is not None):
        raise typer.BadParameter("goes alone", param_hint="--reset")
    settings = encoding.settings()
    collection = Collection.open(options.collections_root(settings), name)
    if reset:
        removed = collection.remove_effort()
        if as_json:
            print_json({"collection": collection.settings.name, "removed": removed})
        else:
            state = "was removed" if removed else "is none"
            console().print(f"Collection {name!r}: stored effort {state}; the usual one from now on.")
        return
    try:
        rows, effort = _measured(collection, settings, recall, k, queries, file, seed)
    except NothingToTuneError as nothing:
        if as_json:
            print_json(
                {"collection": collection.settings.name, "measured": [], "effort": None, "stored": False}
            )
        else:
            console().print(f"Nothing to tune: {nothing}.", markup=False, soft_wrap=True)
        return
    stored = effort.recall >= recall and not dry_run
    if stored:
        collection.store_effort(effort)
    if as_json:
        print_json(_report(collection, rows, effort, stored=stored))
    else:
        _print_report(rows, effort, stored=stored)
    if effort.recall < recall:
        from tercet.service.exceptions import ServiceError

        raise ServiceError(
            f"no effort finds {recall:.3f} of the {k} nearest, at most {effort.recall:.4f}, so nothing was "
            "stored; ask for less, or build with another dense kind"
        )


def _measured(
    collection: Collection,
    settings: Settings,
    recall: float,
    k: int,
    count: int,
    file: Path | None,
    seed: int,
) -> tuple[list[MeasuredEffort], DenseEffort]:
    """What each effort gives, and the last of them with where it comes from."""
    from tercet.cli.progress import count_progress
    from tercet.index.catalog.effort import DenseEffort
    from tercet.index.tuning import EffortTuning

    snapshot = collection.snapshot()
    tuning = EffortTuning(snapshot, k)
    if file is None:
        vectors = tuning.sampled_queries(count, seed)
    else:
        vectors = _encoded(collection, settings, list(islice(read_texts(file), count)), file)
    with count_progress("Searching", "queries") as progress:
        rows = list(tuning.measured(vectors, recall, progress))
    last = rows[-1]
    effort = DenseEffort(
        last.ef_search,
        last.nprobe,
        tuning.kind,
        snapshot.name,
        recall,
        last.recall,
        k,
        len(vectors),
        "documents" if file is None else "file",
    )
    return rows, effort


def _encoded(collection: Collection, settings: Settings, texts: list[str], file: Path) -> Float32:
    """The dense vectors of queries, by the collection's encoder."""
    from tercet.cli.encoders import encoder_of
    from tercet.ingest.encoder_match import require_encoder
    from tercet.ingest.errors import SourceError
    from tercet.models.encoder import encode, with_adapter

    if not texts:
        raise SourceError(f"{file}: no texts; give at least one line")
    encoder = with_adapter(encoder_of(settings, collection.settings), collection.settings.adapter)
    require_encoder(collection.settings, encoder.info)
    vectors = encode(encoder, texts, "query", ["dense"]).dense
    assert vectors is not None  # noqa: S101  # as asked for
    return vectors


def _report(
    collection: Collection, rows: list[MeasuredEffort], effort: DenseEffort, *, stored: bool
) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "collection": collection.settings.name,
        "measured": [
            {**asdict(row.options), "recall": row.recall, "lowest": row.lowest, "ms": row.milliseconds}
            for row in rows
        ],
        "effort": asdict(effort),
        "stored": stored,
    }


def _print_report(rows: list[MeasuredEffort], effort: DenseEffort, *, stored: bool) -> None:
    option = "ef_search" if effort.kind == "hnsw" else "nprobe"
    table = Table(box=None, padding=(0, 1))
    for column in (option, f"recall@{effort.k}", "lowest", "ms"):
        table.add_column(column, justify="right")
    for row in rows:
        numbers = f"{row.recall:.4f}", f"{row.lowest:.4f}", f"{row.milliseconds:.2f}"
        table.add_row(str(getattr(row.options, option)), *numbers)
    console().print(table)
    source = "stored vectors with noise" if effort.source == "documents" else "queries of the file"
    done = "Stored" if stored else "Not stored"
    console().print(
        f"{done}: {option} {getattr(effort, option)} for {effort.kind}; recall {effort.recall:.4f} on "
        f"{effort.queries:,} {source}, snapshot {effort.snapshot}."
    )
