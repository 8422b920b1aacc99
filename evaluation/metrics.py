"""nDCG@10, Recall@100 and reciprocal rank@10 of rankings, through ir-measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ir_measures
from ir_measures import RR, R, nDCG

MEASURES = (nDCG @ 10, R @ 100, RR @ 10)


def measure(
    qrels: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Means over the judged queries: `{"nDCG@10": …, "R@100": …, "RR@10": …}`; gains are linear.

    qrels: grade by document id, by query id. rankings: document ids by query id, best first; a judged
    query without a ranking counts 0. Ranks are handed over as scores, so that ties stay broken as given.
    """
    judgments = [
        ir_measures.Qrel(query, document, grade)
        for query, grades in qrels.items()
        for document, grade in grades.items()
    ]
    run = [
        ir_measures.ScoredDoc(query, document, -float(rank))
        for query, documents in rankings.items()
        for rank, document in enumerate(documents)
    ]
    means = ir_measures.calc_aggregate(MEASURES, judgments, run)
    return {str(m): float(means[m]) for m in MEASURES}
