"""A query's terms: that it has any, and their weights as its answer shows them, with the collection's idf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from tercet.index.scoring import DECIMALS
from tercet.index.wording import shown
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


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A query as its encoder read it. terms: where there is an idf, and the query has lexical weights."""

    tokens: int
    truncated: bool
    terms: QueryTerms | None = None

    @staticmethod
    def of(query: Representations, idf: Idf | None, tokenizer: Tokenizer) -> ReadQuery:
        """What is read of the representations of one query. idf: of the terms; None leaves them out."""
        terms = None
        if idf is not None and query.sparse is not None:
            token_ids, weights = query.sparse.row(0)
            terms = QueryTerms(
                token_ids=token_ids.tolist(),
                tokens=tokenizer.shown_tokens(token_ids),
                weights=weights.astype(np.float64).round(DECIMALS).tolist(),
                idf=idf.of_terms(token_ids).round(DECIMALS).tolist(),
            )
        return ReadQuery(int(query.tokens[0]), bool(query.truncated[0]), terms)


def require_meaning(tokenizer: Tokenizer, query: str, param: str) -> None:
    """Raises InvalidRequestError for a query that is blank, which could only find what is alike by chance."""
    if is_blank(tokenizer, query, "query"):
        raise InvalidRequestError(
            f"{param} is {shown(query, 40)}, which has no token for the encoder to read; give it words, or "
            "list documents with GET /collections/{name}/documents",
            param,
        )
