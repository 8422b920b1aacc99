"""`tercet pairs`: training pairs before they are trained on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, print_json
from tercet.cli.pair_questions import questions

if TYPE_CHECKING:
    from tercet.models.encoder import Encoder
    from tercet.training.curation.filtering import FilterCounts, PairFilters
    from tercet.training.curation.rules import Lengths

app = typer.Typer(help="Filter training pairs, and have a language model write some.", no_args_is_help=True)
app.command()(questions)

WORDS = {
    "query_length": "queries of another length",
    "passage_length": "passages of another length",
    "contained": "queries that stand in their passage",
    "near_duplicate": "near duplicates of an earlier pair",
    "low_score": "scores below the floor",
    "not_found_again": "passages that their query does not find",
}


def _share(words: str) -> float:
    """A number above 0 and at most 1."""
    try:
        value = float(words)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise typer.BadParameter(f"{words} is no number above 0 and at most 1")
    return value


@dataclass(frozen=True, kw_only=True)
class FilterFlags:
    """The filters of pairs; none is on by default."""

    query_characters: Annotated[
        str | None,
        typer.Option(metavar="MIN:MAX", help="Characters of a query; either may be left out."),
    ] = None
    passage_characters: Annotated[
        str | None,
        typer.Option(metavar="MIN:MAX", help="Characters of a passage; either may be left out."),
    ] = None
    drop_contained: Annotated[
        bool,
        typer.Option("--drop-contained", help="Leave out queries that are their passage or stand in it."),
    ] = False
    near_duplicates: Annotated[
        float | None,
        typer.Option(
            parser=_share,
            metavar="SIMILARITY",
            help="Leave out pairs whose query and passage are both this similar to those of an earlier pair, "
            "such as 0.8: the Jaccard similarity of their letters, four at a time, as MinHash estimates it.",
        ),
    ] = None
    least_score: Annotated[
        float | None,
        typer.Option(help="Leave out pairs that an encoder scores lower, by the weighted sum of its sides."),
    ] = None
    round_trip: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="Leave out pairs whose passage is not among the first K that the query finds among the "
            "passages of all files.",
        ),
    ] = None
    beside: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --round-trip: documents that are searched as well, as training reads them.",
        ),
    ] = None
    weights: Annotated[
        str,
        typer.Option(
            metavar="PRESET|D,S,C", help="Of the sum of --least-score and --round-trip, as in searches."
        ),
    ] = "sum"

    def filters(self, encoding: options.EncoderFlags) -> PairFilters:
        """The filters, and the encoder where one of them needs it. Raises typer.BadParameter for none."""
        from tercet.cli.search import parse_weights
        from tercet.service.search.scoring import score_texts
        from tercet.training.curation.encoder_filters import RoundTrip, SumFloor
        from tercet.training.curation.filtering import PairFilters
        from tercet.training.curation.rules import PairRules
        from tercet.training.data.documents import read_texts

        encodes = self.least_score is not None or self.round_trip is not None
        texts = (self.query_characters, self.passage_characters, self.near_duplicates)
        if not (encodes or self.drop_contained or any(value is not None for value in texts)):
            raise typer.BadParameter("give one filter at least; --help lists them")
        beside = self.beside
        if beside is not None and self.round_trip is None:
            raise typer.BadParameter("goes with --round-trip", param_hint="--beside")
        rules = PairRules(
            _lengths(self.query_characters, "--query-characters"),
            _lengths(self.passage_characters, "--passage-characters"),
            self.drop_contained,
        )
        weights = parse_weights(self.weights)
        if weights.bm25:
            raise typer.BadParameter("an encoder has no BM25; give three numbers", param_hint="--weights")

        def others() -> Iterator[str]:
            if beside is not None:
                yield from (document.text for document in read_texts(beside))

        return PairFilters(
            rules,
            self.near_duplicates,
            None if self.least_score is None else SumFloor(self.least_score, weights, score_texts),
            None if self.round_trip is None else RoundTrip(self.round_trip, weights, others),
            _encoder(encoding) if encodes else None,
        )


@app.command("filter")
@with_flag_groups
def filter_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Training pairs, .jsonl or .jsonl.gz.")
    ],
    output: Annotated[Path, typer.Option(help="File to write, in the same format; gzip by its name.")],
    report: Annotated[
        Path | None,
        typer.Option(help="File that gets a line for each pair that is left out.", show_default=False),
    ] = None,
    *,
    chosen: FilterFlags,
    encoding: options.EncoderFlags,
    as_json: options.AsJson = False,
) -> None:
    """Leave out training pairs that are too short or long, repeat others, or do not belong together.

    Each positive of a line is judged with the line's query; a line without any left is left out. Example:

    tercet pairs filter pairs.jsonl --output kept.jsonl --report left-out.jsonl --near-duplicates 0.8
    """
    from tercet.training.curation.filtering import filter_pairs

    written = [path for path in (output, report) if path is not None]
    read = [*files, *([] if chosen.beside is None else [chosen.beside])]
    for place, path in enumerate(written):
        if path.resolve() in {other.resolve() for other in (*read, *written[:place])}:
            raise typer.BadParameter(f"{path} is given twice; name another file", param_hint="--output")
        if not path.absolute().parent.is_dir():
            raise typer.BadParameter(f"{path}: there is no such folder; make it first", param_hint="--output")
    counts = filter_pairs(files, output, chosen.filters(encoding), report)
    if as_json:
        print_json({"output": str(output), **asdict(counts)})
    else:
        _print(counts, output)


def _encoder(encoding: options.EncoderFlags) -> Encoder:
    from tercet.cli.encoders import adapted_encoder

    return adapted_encoder(encoding.settings(), None)


def _lengths(words: str | None, flag: str) -> Lengths:
    """The limits that `MIN:MAX` stands for. Raises typer.BadParameter."""
    from tercet.training.curation.rules import Lengths

    least, colon, most = (words or ":").partition(":")
    try:
        lengths = Lengths(int(least or 1), int(most or 0) or math.inf)
    except ValueError:
        lengths = Lengths(1, 0)
    if not colon or not 1 <= lengths.least <= lengths.most:
        raise typer.BadParameter(
            f"{words!r} is no MIN:MAX of whole numbers from 1, such as 10:500, 10: or :500", param_hint=flag
        )
    return lengths


def _print(counts: FilterCounts, output: Path) -> None:
    out = console()
    out.print(
        f"Wrote {output}: {counted(counts.lines_kept, 'line')} of {counts.lines:,}, "
        f"{counted(counts.pairs_kept, 'pair')} of {counts.pairs:,}",
        soft_wrap=True,
    )
    for reason, count in counts.dropped.items():
        if count:
            out.print(f"  {count:,}  {WORDS[reason]}", soft_wrap=True)
