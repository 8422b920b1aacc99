"""Re-ranking for the routes of other services: the three-way sum, and what their clients expect of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, Tag

from tercet.models.representations import Output
from tercet.service.compat.relevance import relevance
from tercet.service.encoding.service import EncodingService
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.deadlines import Deadline
from tercet.service.routes.common import check_characters
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import told_apart
from tercet.service.schemas.search_answers import ScoresResponse
from tercet.service.search.answers import scores_record
from tercet.service.search.defaults import rerank_weights
from tercet.service.search.rerank import RankedText, RerankOutcome, rerank


class TextRecord(BaseModel):
    """A text as it was given."""

    text: str


class RerankedResult(BaseModel):
    """A text of the request by its place."""

    index: int
    relevance_score: float = Field(description="Between 0 and 1; grows with `score`.")
    score: float = Field(description="The sum of the three scores.")
    scores: ScoresResponse
    document: TextRecord | None = None


def _text_or_object(value: object) -> str:
    return "text" if isinstance(value, str) else "object" if isinstance(value, dict) else ""


TextRequest = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, Any], Tag("object")],
    *told_apart(_text_or_object, "a string or an object"),
]


def texts_of(documents: Sequence[str | dict[str, Any]], param: str) -> list[str]:
    """The texts of documents, which are texts or objects with one. Raises InvalidRequestError."""
    texts: list[str] = []
    for place, document in enumerate(documents):
        text = document if isinstance(document, str) else document.get("text")
        if not isinstance(text, str):
            raise InvalidRequestError(
                f"{param}.{place} has no text; send a text, or an object with one under text",
                f"{param}.{place}",
            )
        texts.append(text)
    return texts


async def ranked_texts(
    services: Runtime,
    encoding: EncodingService,
    query: str,
    texts: Sequence[str],
    deadline: Deadline,
    *,
    param: str = "documents",
    top_n: int | None = None,
    adapter: str | None = None,
) -> RerankOutcome:
    """Texts, at least one, by their three-way sum with the query. param: what the request calls the texts.

    Raises as `/rerank`.
    """
    limits = services.limits
    check_characters([query], limits.characters, "query")
    check_characters(texts, limits.characters, param)
    with services.telemetry.stage("rerank"):
        return await rerank(
            encoding,
            services.pools.search,
            query,
            texts,
            weights=rerank_weights(None, None),
            request_tokens=limits.request_tokens,
            top_n=top_n,
            adapter=adapter,
            deadline=deadline,
        )


def result_record(ranked: RankedText, sides: Sequence[Output]) -> dict[str, Any]:
    """A result, with the sum and its parts beside the relevance. sides: what the encoder gives."""
    return {
        "index": ranked.index,
        "relevance_score": relevance(ranked.score),
        "score": ranked.score,
        "scores": scores_record(ranked.scores, sides),
    }
