"""The three exact scores of everything that searches with several numbers of candidates would score.

Each number of candidates is retrieved for itself, since an approximate dense index searches wider for more
of them: its answer for 50 is not the beginning of its answer for 400. Late interaction, which takes most of
the time, is computed once a document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import CandidateLimits
from tercet.index.fusion import relative_sums
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Bool, Float64, Int64, Representations

DEPTH = 10


@dataclass(frozen=True, slots=True)
class JudgedScores:
    """One judged query and its K candidates, in order of id.

    components: float64[K, S] (dense, sparse, colbert, and BM25, which is not tuned, where there is that
    side); proposed: bool[C, K], which of them a search with each of C numbers of candidates scores; grades:
    int64[K], 0 for what is not judged relevant; ideal: DCG of the best ranking that the judgments allow.
    """

    components: Float64
    proposed: Bool
    grades: Int64
    ideal: float


def judged_scores(
    snapshot: Snapshot, query: Representations, grades: Mapping[str, int], limits: Sequence[int]
) -> JudgedScores:
    """Scores of all that is found with each of the limits as `candidates.dense` and `candidates.sparse`.

    grades: of judged documents, by id, one at least above 0.
    """
    ids: list[str] = []
    parts: list[Float64] = []
    numbers: dict[tuple[int, int], int] = {}  # by segment and row
    members: dict[int, list[int]] = {}
    for limit in sorted(limits, reverse=True):
        candidates = snapshot.retrieve(query, candidates=CandidateLimits(limit, limit))
        keys = list(zip(candidates.segments.tolist(), candidates.rows.tolist(), strict=True))
        new = np.array([number for number, key in enumerate(keys) if key not in numbers], np.int64)
        new_ids, components = snapshot.score(query, candidates.take(new))
        for number in new.tolist():
            numbers[keys[number]] = len(numbers)
        ids += new_ids
        parts.append(components)
        members[limit] = [numbers[key] for key in keys]
    proposed = np.zeros((len(limits), len(ids)), np.bool_)
    for row, limit in enumerate(limits):
        proposed[row, members[limit]] = True
    order = np.array(sorted(range(len(ids)), key=lambda number: ids[number].encode()), np.int64)
    return JudgedScores(
        np.concatenate(parts)[order],
        proposed[:, order],
        np.array([max(0, grades.get(ids[number], 0)) for number in order], np.int64),
        ideal_dcg(list(grades.values())),
    )


def ideal_dcg(grades: Sequence[int]) -> float:
    """DCG@10 of the grades in descending order."""
    best = sorted((grade for grade in grades if grade > 0), reverse=True)[:DEPTH]
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, start=1))


def ndcg_table(judged: JudgedScores, weights: Float64) -> Float64:
    """nDCG@10 with linear gains, of each number of candidates under each of weights float64[G, 3].

    Returns float64[C, G]. DCG = sum over ranks of grade / log2(rank + 1) (Järvelin and Kekäläinen 2002), as
    ir-measures computes it. Candidates are ranked as a search ranks them, ties in order of id; one
    of which no side with a weight says anything is no hit.
    """
    matching = ((weights[:, None] != 0) & (judged.components[None, :, : weights.shape[1]] != 0)).any(
        axis=2
    )  # (G, K)
    sums = relative_sums(judged.components, weights)
    order = np.argsort(-sums, axis=1, kind="stable")  # (G, K)
    gains = judged.grades[order].astype(np.float64)
    table = np.empty((len(judged.proposed), len(weights)))
    for row, proposed in enumerate(judged.proposed):
        present = np.take_along_axis(proposed & matching, order, axis=1)  # (G, K)
        ranks = np.cumsum(present, axis=1)
        counted = present & (ranks <= DEPTH) & (gains > 0)
        discounted = np.divide(gains, np.log2(ranks + 1), out=np.zeros_like(gains), where=counted)
        table[row] = discounted.sum(axis=1) / judged.ideal
    return table
