"""Writes the training pairs that pass all filters, and a report of those that do not."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tercet.models.encoder import Encoder
from tercet.training.curation.encoder_filters import RoundTrip, SumFloor
from tercet.training.curation.near_duplicates import PairHashes
from tercet.training.curation.pair_lines import PairLine, Reason, Verdicts, read_lines
from tercet.training.curation.rules import PairRules
from tercet.training.data.pairs import json_line
from tercet.training.files import replacing

ANY_PAIR = PairRules()


@dataclass(frozen=True, slots=True)
class PairFilters:
    """The filters, in the order in which they are applied. near_duplicates: see `PairHashes.duplicates`;
    encoder: of the last two.
    """

    rules: PairRules = ANY_PAIR
    near_duplicates: float | None = None
    floor: SumFloor | None = None
    round_trip: RoundTrip | None = None
    encoder: Encoder | None = None


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """What was read and kept; pairs are those of a query and one positive. dropped: pairs by reason."""

    lines: int
    lines_kept: int
    pairs: int
    pairs_kept: int
    dropped: dict[Reason, int]


def filter_pairs(
    paths: Sequence[Path], output: Path, filters: PairFilters, report: Path | None = None
) -> FilterCounts:
    """Writes the lines of all files into one, each with the positives that pass all filters.

    A line without any is left out; one with all of them is written as it is. Negatives stay. Files are read
    several times. report: a file that gets one JSON object for each pair that is left out. Both files appear
    when all is done, and are gzip where their names end in `.gz`.
    Raises TrainingDataError for a bad line, naming it.
    """
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}-") as scratch:
        folder = Path(scratch)
        judge_texts(paths, verdicts, filters, folder / "hashes")
        if filters.encoder is not None:
            if filters.floor is not None:
                filters.floor.apply(read_lines(paths), verdicts, filters.encoder)
            if filters.round_trip is not None:
                filters.round_trip.apply(lambda: read_lines(paths), verdicts, filters.encoder, folder)
    with written(output) as kept, written(report) as dropped:
        lines, lines_kept = write_lines(paths, verdicts, kept, dropped)
    left_out = verdicts.counts()
    return FilterCounts(lines, lines_kept, len(verdicts), len(verdicts) - sum(left_out.values()), left_out)


def judge_texts(paths: Sequence[Path], verdicts: Verdicts, filters: PairFilters, hashes: Path) -> None:
    """Rules and near duplicates, which need no encoder. hashes: a file for those of all pairs."""
    threshold = filters.near_duplicates
    kept = None if threshold is None else PairHashes(hashes)
    for line in read_lines(paths):
        query = line.pair.query
        for number, passage in line.numbered:
            verdicts.add()
            broken = filters.rules.broken(query, passage)
            if broken is not None:
                verdicts.drop(number, *broken)
            elif kept is not None:
                kept.add(number, query, passage)
    if kept is not None and threshold is not None:
        for number, earlier in kept.duplicates(threshold):
            verdicts.drop(number, "near_duplicate", earlier)


def write_lines(
    paths: Sequence[Path], verdicts: Verdicts, kept: BinaryIO, dropped: BinaryIO
) -> tuple[int, int]:
    """Writes lines, and the report; returns how many lines were read and how many are kept."""
    lines = lines_kept = 0
    wanted = {
        int(detail)
        for pair in range(len(verdicts))
        if not verdicts.keeps(pair)
        for reason, detail in (verdicts.dropped(pair),)
        if reason == "near_duplicate"
    }
    places: dict[int, str] = {}
    for line in read_lines(paths):
        lines += 1
        places.update((number, line.where) for number, _ in line.numbered if number in wanted)
        rest = verdicts.kept(line)
        for record in report_records(line, verdicts, places):
            dropped.write((json_line(record) + "\n").encode())
        if rest:
            lines_kept += 1
            whole = len(rest) == len(line.pair.positives)
            text = line.text.strip() if whole else shortened(line, [n - line.first for n, _ in rest])
            kept.write(text.encode() + b"\n")
    return lines, lines_kept


def report_records(
    line: PairLine, verdicts: Verdicts, places: dict[int, str]
) -> Iterator[dict[str, str | int | float]]:
    """One record of each pair of a line that is left out. places: the lines of pairs that others repeat."""
    for number, _ in line.numbered:
        if verdicts.keeps(number):
            continue
        reason, detail = verdicts.dropped(number)
        what: dict[str, str | int | float]
        if reason == "near_duplicate":
            what = {"of": places[int(detail)]}
        elif reason == "low_score":
            what = {"score": round(detail, 6)}
        else:
            what = {"beyond_rank" if reason == "not_found_again" else "characters": int(detail)}
        yield {"line": line.where, "positive": number - line.first, "reason": reason, **what}


def shortened(line: PairLine, positives: Sequence[int]) -> str:
    """A line with these of its positives, and their scores, alone."""
    value = json.loads(line.text)
    for key in ("pos", "pos_scores"):
        if key in value:
            value[key] = [value[key][place] for place in positives]
    return json_line(value)


@contextmanager
def written(path: Path | None) -> Iterator[BinaryIO]:
    """A file that appears when it is whole, compressed where its name says so; None keeps nothing."""
    if path is None:
        yield Nothing()
        return
    with replacing(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]  # it writes as one does


class Nothing(io.BytesIO):
    """A file that keeps nothing of what is written."""

    def write(self, _: object, /) -> int:
        """Nothing."""
        return 0
