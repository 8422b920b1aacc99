"""What sides weigh where nobody says, by how many languages a collection has.

A document in another language than the query shares hardly any term with it, whatever it says. So where
documents are in several languages, lexical scores tell languages apart before anything else: they weigh less.
"""

from __future__ import annotations

from tercet.index.candidates import Weights

ONE_LANGUAGE = (
    0.8  # from this chance on that two documents are in one language, a collection counts as of one
)
LEAST_WEIGHT = 0.1  # so that what is the same in all languages, such as part numbers, still counts


def usual_weights(same_language: float, bm25: float = 0.0) -> Weights:
    """Weights for a collection, given the chance p that two of its documents are in one language: p² for the
    lexical side, and 1 for the others. docs/multilingual.md has the measurements.

    bm25: the weight of BM25 in one language, of which p² is left, too.
    """
    shared = 1.0 if same_language >= ONE_LANGUAGE else round(max(LEAST_WEIGHT, same_language**2), 3)
    return Weights(sparse=shared, bm25=shared * bm25)
