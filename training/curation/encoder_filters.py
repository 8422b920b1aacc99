"""What an encoder says of pairs: the sum of their scores, and whether a query finds its passage again.

Round-trip consistency: Alberti et al. 2019, arXiv 1906.05416; of retrieval: Dai et al. 2022,
arXiv 2209.11755, section 3.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tercet.index.candidates import DEFAULT_CANDIDATES, CandidateLimits, Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.fusion import weighted_sum
from tercet.models.encoder import Encoder, encode
from tercet.models.representations import Float64, Representations
from tercet.models.stream import encode_stream
from tercet.training.curation.pair_lines import PairLine, Verdicts
from tercet.training.data.pairs import text_digest

ScoreTexts = Callable[[Representations, Representations], Float64]
"""The scores of one query and B texts, float64[B, 3], as searches define them."""
# Of lines that are encoded together: few enough for all their token vectors to be in memory.
CHARACTERS_AT_ONCE = 100_000
NAME = "passages"
NO_WORDS = "-"  # a document's text is not empty


@dataclass(frozen=True, slots=True)
class SumFloor:
    """Pairs whose weighted sum is less than `least` are left out."""

    least: float
    weights: Weights
    score_texts: ScoreTexts

    def apply(self, lines: Iterable[PairLine], verdicts: Verdicts, encoder: Encoder) -> None:
        """Leaves out pairs of these lines."""
        weights = self.weights.of(encoder.info.sides)
        for block in blocks(lines, verdicts):
            queries = encode(encoder, [line.pair.query for line in block], "query")
            kept = [verdicts.kept(line) for line in block]
            passages = encode(encoder, [text for texts in kept for _, text in texts])
            row = 0
            for place, texts in enumerate(kept):
                rows = np.arange(row, row := row + len(texts))
                scores = self.score_texts(queries.take(np.array([place])), passages.take(rows))
                for (number, _), total in zip(texts, weighted_sum(scores, weights).tolist(), strict=True):
                    if total < self.least:
                        verdicts.drop(number, "low_score", total)


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Pairs whose passage is not among the first `ranks` that the query finds are left out.

    It is ranked among all passages of all files, and among the texts of `beside`.
    """

    ranks: int
    weights: Weights
    beside: Callable[[], Iterable[str]] = tuple

    def apply(
        self,
        lines: Callable[[], Iterable[PairLine]],
        verdicts: Verdicts,
        encoder: Encoder,
        folder: Path,
    ) -> None:
        """Leaves out pairs of these lines, which are read twice. folder: for the index of the passages."""

        def texts() -> Iterator[str]:
            for line in lines():
                yield from line.pair.positives
                yield from line.pair.negatives
            yield from self.beside()

        collection = built(folder, encoder, texts())
        snapshot = collection.snapshot()
        weights = self.weights.of(encoder.info.sides)
        for block in blocks(lines(), verdicts):
            queries = encode(encoder, [line.pair.query for line in block], "query")
            for place, line in enumerate(block):
                own = {text_digest(text) for text in line.pair.positives}
                count = self.ranks + len(own) - 1
                most = max(DEFAULT_CANDIDATES, count)
                hits = snapshot.search(
                    queries.take(np.array([place])),
                    top_k=count,
                    weights=weights,
                    candidates=CandidateLimits(most, most, most),
                    contents=False,
                ).hits
                ranks = ranks_of([hit.document.id for hit in hits], own)
                for number, text in verdicts.kept(line):
                    if ranks.get(text_digest(text), count + 1) > self.ranks:
                        verdicts.drop(number, "not_found_again", self.ranks)
        snapshot.close()


def ranks_of(ids: list[str], own: set[str]) -> dict[str, int]:
    """The rank of each of a query's own passages that is found, counted without the others of its own."""
    ranks, others = {}, 0
    for id in ids:
        if id in own:
            ranks[id] = others + 1
        else:
            others += 1
    return ranks


def blocks(lines: Iterable[PairLine], verdicts: Verdicts) -> Iterator[list[PairLine]]:
    """Lines that have pairs left, as many at a time as bounded memory takes."""
    block: list[PairLine] = []
    characters = 0
    for line in lines:
        kept = verdicts.kept(line)
        if not kept:
            continue
        size = sum(len(text) for _, text in kept)
        if block and characters + size > CHARACTERS_AT_ONCE:
            yield block
            block, characters = [], 0
        block.append(line)
        characters += size
    if block:
        yield block


def built(folder: Path, encoder: Encoder, texts: Iterable[str]) -> Collection:
    """A collection of the distinct texts, without their words, whose ids are the digests of the texts."""
    info = encoder.info
    settings = CollectionSettings(
        NAME,
        encoder=info.name,
        fingerprint=info.fingerprint,
        dense_dimension=info.dense_dimension,
        colbert_dimension=info.colbert_dimension,
        token_codec="int8" if info.colbert_dimension else "none",
        vocabulary_size=info.vocabulary_size,
        lexical=info.lexical,
    )
    collection = Collection.create(folder, NAME, settings)
    known: set[bytes] = set()
    pending: deque[str] = deque()

    def distinct() -> Iterator[str]:
        for text in texts:
            id = text_digest(text)
            if (key := bytes.fromhex(id)) not in known:
                known.add(key)
                pending.append(id)
                yield text

    with collection.writer() as writer:
        for encoded in encode_stream(encoder, distinct()):
            writer.add([Document(pending.popleft(), NO_WORDS) for _ in range(len(encoded))], encoded)
        writer.publish()
    return collection
