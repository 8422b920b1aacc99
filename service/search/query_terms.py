"""A query's terms: that it has any, and their weights as its answer shows them, with the collection's idf."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from tercet.index.scoring import DECIMALS
from tercet.models.representations import Representations
from tercet.models.texts.blank import is_blank
from tercet.models.tokenizer import Tokenizer
from tercet.service.collections.readable import Idf
from tercet.service.exceptions import InvalidRequestError


class QueryTerms(TypedDict):
    """The terms of a query, one place for each in every list. idf: idf(t) / m of the collection."""

    token_ids: list[int]
    tokens: list[str]
    weights: list[float]
    idf: list[float]


def require_meaning(tokenizer: Tokenizer, query: str, param: str) -> None:
    """Raises InvalidRequestError for a query that is blank, which could only find what is alike by chance."""
    if is_blank(tokenizer, query, "query"):
        raise InvalidRequestError(
            f"{param} is {query[:40]!r}, which has no token for the encoder to read; give it words, or list "
            "documents with GET /collections/{name}/documents",
            param,
        )


def query_terms(query: Representations, idf: Idf | None, tokenizer: Tokenizer) -> QueryTerms | None:
    """The terms of one query; None where the collection has no idf or the query no lexical weights."""
    if idf is None or query.sparse is None:
        return None
    token_ids, weights = query.sparse.row(0)
    return QueryTerms(
        token_ids=token_ids.tolist(),
        tokens=tokenizer.token_strings(token_ids),
        weights=weights.astype(np.float64).round(DECIMALS).tolist(),
        idf=idf.of_terms(token_ids).round(DECIMALS).tolist(),
    )
