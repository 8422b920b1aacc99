"""The pairs of one source as rows of token stores, part of them held out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tercet.models.representations import Float32, Int64, offsets_of
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.documents import (
    TrainingText,
    read_texts,
    repeated_pairs,
    span_pairs,
    title_pairs,
)
from tercet.training.data.held_out import HeldOutTexts
from tercet.training.data.pairs import LineRules, TrainingPair, joined_neighbours, read_pairs
from tercet.training.data.token_store import TokenStore, TokenWriter
from tercet.training.errors import TrainingDataError
from tercet.training.settings.data import PairData, PairSource


@dataclass(frozen=True, slots=True)
class RaggedRows:
    """Rows of passages for each of P pairs, packed: rows int64[Σ], offsets int64[P+1]."""

    rows: Int64
    offsets: Int64

    def of(self, pair: int) -> Int64:
        """The rows of one pair."""
        return self.rows[self.offsets[pair] : self.offsets[pair + 1]]

    @staticmethod
    def pack(rows: Sequence[Int64]) -> RaggedRows:
        """The rows of each pair, in order."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return RaggedRows(np.concatenate([np.zeros(0, np.int64), *rows]), offsets_of(lengths))


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """A teacher's scores of the passages of P pairs: rows of those that have one, and float32[Σ] beside them.

    A pair without scores has no rows.
    """

    rows: RaggedRows
    scores: Float32

    def of_batch(self, pairs: Int64, passages: Int64) -> Float32:
        """The score of each passage for each pair, float32[B, N]; NaN where the pair's line gives none."""
        scores: Float32 = np.full((len(pairs), len(passages)), np.nan, np.float32)
        for place, pair in enumerate(pairs.tolist()):
            inside = slice(self.rows.offsets[pair], self.rows.offsets[pair + 1])
            columns, scored = np.nonzero(passages[:, None] == self.rows.rows[inside])
            scores[place, columns] = self.scores[inside][scored]
        return scores


@dataclass(frozen=True, slots=True)
class PairTexts:
    """Queries and passages of a source as one tokenizer cuts them."""

    queries: TokenStore
    passages: TokenStore


@dataclass(frozen=True, slots=True)
class PairTable:
    """P pairs of a source. Query i belongs to pair i; passages are the distinct ones of all pairs.

    training, development: pair numbers; no positive of a development pair is one of a training pair.
    pool: the passages that development queries rank. scored: scores that lines of the file give their
    passages. taught: the same texts as the teacher reads them.
    """

    settings: PairSource
    queries: TokenStore
    passages: TokenStore
    positives: RaggedRows
    negatives: RaggedRows
    training: Int64
    development: Int64
    pool: Int64
    scored: ScoredRows
    taught: PairTexts | None = None

    def training_passages(self) -> Int64:
        """Rows of the distinct passages of all training pairs, ascending."""
        given = (
            rows.of(pair) for rows in (self.positives, self.negatives) for pair in self.training.tolist()
        )
        return np.unique(np.concatenate([np.zeros(0, np.int64), *given]))

    def passage_tokens(self, pairs: Int64) -> Int64:
        """Tokens of the longest positive of each of the pairs, int64[len(pairs)]."""
        lengths = self.passages.lengths[self.positives.rows]
        return np.maximum.reduceat(lengths, self.positives.offsets[:-1])[pairs]


def read_tables(
    settings: PairData,
    data: Path,
    work: Path,
    tokenizer: Tokenizer,
    neighbours: int,
    seed: int,
    teacher: Tokenizer | None = None,
    scores: bool | None = None,
) -> list[PairTable]:
    """The pairs of every source but those of plain documents; token ids go to files below `work`.

    teacher: the tokenizer by which sources that are taught are cut as well. scores: as in `LineRules`.
    Raises TrainingDataError for a bad line, naming it, and for a source without pairs.
    """
    held_out = HeldOutTexts.of(data / folder for folder in settings.held_out)
    rules = LineRules(scores, tokenizer.instruction("query"))
    tables = []
    for number, source in enumerate(settings.sources):
        kept = source_pairs(source, data, seed, held_out, rules)
        folder = work / f"source-{number}"
        readers = [tokenizer] if teacher is None or not source.taught else [tokenizer, teacher]
        tables.append(build_table(source, kept, folder, readers, settings, neighbours, seed))
    return tables


def require_scores(tables: Sequence[PairTable]) -> None:
    """Raises TrainingDataError where a teacher scored no negative of any pair that is trained on."""
    for table in tables:
        rows, positives = table.scored.rows, table.positives
        if any(len(rows.of(pair)) > len(positives.of(pair)) for pair in table.training.tolist()):
            return
    paths = ", ".join(table.settings.path for table in tables if table.settings.train)
    raise TrainingDataError(
        f"{paths}: no line has neg_scores, which losses.teacher_scores is to learn; add pos_scores and "
        "neg_scores, or leave that setting out"
    )


def source_pairs(
    source: PairSource, data: Path, seed: int, held_out: HeldOutTexts, rules: LineRules
) -> Iterator[TrainingPair]:
    """The pairs of a source's file, in file order, but for those with a held-out text.

    They are left out before anything is made of them: what is cut or joined would occur no more.
    Raises TrainingDataError where passages that a teacher scored would be joined.
    """
    path = data / source.path
    pairs: Iterator[TrainingPair]
    if source.format == "pairs":
        given = read_pairs(path, source.lines, rules)
        pairs = (pair for pair in given if not held_out.contain_any([*pair.positives, *pair.negatives]))
    else:
        texts = read_texts(path, source.lines, source.language)
        kept = (text for text in texts if not held_out.contain_any([text.text]))
        made: dict[str, Callable[[Iterator[TrainingText]], Iterator[TrainingPair]]]
        made = {"titles": title_pairs, "repeats": repeated_pairs, "spans": partial(span_pairs, seed=seed)}
        pairs = made[source.format](kept)
    if source.join_up_to == 1:
        return pairs
    whole = list(pairs)
    if any(pair.scores for pair in whole):
        raise TrainingDataError(
            f"{source.path}: a teacher scored its passages as they are, and join_up_to = "
            f"{source.join_up_to} would join them; leave join_up_to out"
        )
    return iter(joined_neighbours(whole, source.join_up_to, seed))


def build_table(
    source: PairSource,
    pairs: Iterable[TrainingPair],
    folder: Path,
    tokenizers: Sequence[Tokenizer],
    settings: PairData,
    neighbours: int,
    seed: int,
) -> PairTable:
    """Tokenizes the pairs as they come and chooses the held-out ones.

    tokenizers: the encoder's and, of a source that is taught, the teacher's.
    """
    positives: list[Int64] = []
    negatives: list[Int64] = []
    scored: list[Int64] = []
    scores: list[float] = []
    with ExitStack() as stack:
        writers = [
            stack.enter_context(PairWriter(folder / str(number), tokenizer, settings))
            for number, tokenizer in enumerate(tokenizers)
        ]
        rows = PassageRows([writer.passages for writer in writers])
        for pair in pairs:
            writers[0].queries.add(pair.prompt + pair.query)
            for writer in writers[1:]:  # a prompt is written for the encoder, not for its teacher
                writer.queries.add(pair.query)
            positives.append(rows.of(pair.positives))
            negatives.append(rows.of(pair.negatives))
            scored.append(np.concatenate([positives[-1], negatives[-1]])[: len(pair.scores)])
            scores.extend(pair.scores)
        if not positives:
            raise TrainingDataError(f"{source.path}: no pair is left to train on or to hold out")
        texts, *taught = [writer.texts() for writer in writers]
    generator = np.random.default_rng(seed)
    order = shuffled_groups(len(positives), neighbours, generator)[: source.most]
    development = np.sort(order[: source.development_pairs])
    reserved = {row for pair in development for row in positives[pair].tolist()}
    later = np.sort(order[source.development_pairs :]) if source.train else order[:0]
    training = np.array([pair for pair in later if reserved.isdisjoint(positives[pair].tolist())], np.int64)
    others = generator.permutation(len(texts.passages))[: source.development_passages]
    pool = np.union1d(np.array(sorted(reserved), np.int64), others) if len(development) else order[:0]
    return PairTable(
        source,
        texts.queries,
        texts.passages,
        RaggedRows.pack(positives),
        RaggedRows.pack(negatives),
        training,
        development,
        pool,
        ScoredRows(RaggedRows.pack(scored), np.array(scores, np.float32)),
        taught[0] if taught else None,
    )


class PairWriter:
    """Writes queries and passages into a folder as one tokenizer cuts them."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, settings: PairData) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        as_query = partial(tokenizer.tokenize, input_type="query", max_length=settings.query_tokens)
        as_passage = partial(tokenizer.tokenize, input_type="document", max_length=settings.passage_tokens)
        self.queries = TokenWriter(folder / "queries.tokens", as_query)
        self.passages = TokenWriter(folder / "passages.tokens", as_passage)

    def __enter__(self) -> PairWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.queries.close()
        self.passages.close()

    def texts(self) -> PairTexts:
        """All that was written so far."""
        return PairTexts(self.queries.store(), self.passages.store())


class PassageRows:
    """The row of each distinct passage; one not seen before is written and gets the next."""

    def __init__(self, writers: Sequence[TokenWriter]) -> None:
        self._writers = writers
        self._rows: dict[bytes, int] = {}

    def of(self, passages: Sequence[str]) -> Int64:
        """The rows of passages, int64[len(passages)]."""
        return np.array([self._row(passage) for passage in passages], np.int64)

    def _row(self, passage: str) -> int:
        # A digest stands for the text, so that memory does not grow with its length.
        digest = hashlib.blake2b(passage.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        row = self._rows.get(digest)
        if row is None:
            row = self._rows[digest] = len(self._rows)
            for writer in self._writers:
                writer.add(passage)
        return row


def shuffled_groups(count: int, together: int, generator: np.random.Generator) -> Int64:
    """Numbers below `count` in random order, but groups of `together` consecutive ones stay as they are."""
    groups = np.array_split(np.arange(count, dtype=np.int64), range(together, count, together))
    return np.concatenate([groups[number] for number in generator.permutation(len(groups))])
