"""Re-ranking for clients of other services: one handler, which an entry of `RERANK_APIS` tells what to read
of a request and what to write in its answer.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Response

from tercet.index.candidates import Weights
from tercet.service.compat import cohere, jina, tei
from tercet.service.compat.apis import Api
from tercet.service.compat.relevance import relevance
from tercet.service.compat.request import encoder_of, last_words
from tercet.service.compat.shapes import CompatibleRequest, filled, item_of
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.deadlines import Deadline
from tercet.service.routes.common import check_characters, json_response
from tercet.service.runtime import Runtime
from tercet.service.search.answers import scores_record
from tercet.service.search.rerank import RankedText, RerankOutcome
from tercet.service.search.rerank import rerank as ranked

RANKED_AT_ONCE = 100  # documents of one search unit, as Cohere counts them


RERANK_APIS = (cohere.COHERE_RERANK, cohere.COHERE_RERANK_V1, jina.JINA_RERANK, tei.TEI_RERANK)


@dataclass(frozen=True, slots=True)
class RerankParts:
    """What requests of all the APIs say; a field of each says it in its own way. repeat: whether the answer
    has the texts; raw: whether scores are sums.
    """

    query: str
    texts: list[str]
    model: str | None = None
    top_n: int | None = None
    repeat: bool = False
    raw: bool = False
    truncate: bool = True
    last_words: bool = False


async def rerank(api: Api, body: CompatibleRequest, services: Runtime, deadline: Deadline) -> Response:
    """A request's texts in the order of their three-way sum with its query, in the shape of its API."""
    read, names = api.request.read(body)
    parts, limit = RerankParts(**read), services.limits.characters
    if not parts.texts:
        return json_response(filled(api.answer, {"rows": []}))
    encoding, adapter = await encoder_of(services, parts.model)
    query, texts = parts.query, parts.texts
    if parts.truncate and parts.last_words:
        tokenizer = encoding.tokenizer
        (query,) = await last_words(services, tokenizer, [query], "query", names["query"])
        texts = await last_words(services, tokenizer, texts, "document", names["texts"])
    check_characters([query], limit, names["query"])
    check_characters(texts, limit, names["texts"])
    with services.telemetry.stage("rerank"):
        outcome = await ranked(
            encoding,
            services.pools.search,
            query,
            texts,
            weights=Weights(),
            request_tokens=services.limits.request_tokens,
            top_n=parts.top_n,
            adapter=adapter,
            deadline=deadline,
        )
    cut = next((f"{names['texts']}.{result.index}" for result in outcome.results if result.truncated), None)
    if not parts.truncate and (cut or outcome.query.truncated):
        name = cut or names["query"]
        raise InvalidRequestError(
            f"{name} is longer than the encoder's {encoding.info.max_length} tokens; shorten it, or let it "
            "be cut with truncate",
            name,
            "text_too_long",
        )
    model = adapter or encoding.info.name
    return await services.pools.bodies.run(_response, api, parts, outcome, model)


routes = [api.routes(partial(rerank, api)) for api in RERANK_APIS]


def _response(api: Api, parts: RerankParts, outcome: RerankOutcome, model: str) -> Response:
    """An answer with an item for each text, too many to be written on the event loop."""
    values = {
        "id": str(uuid.uuid4()),
        "model": model,
        "tokens": outcome.tokens,
        "billed": -(-len(parts.texts) // RANKED_AT_ONCE),
        "rows": [filled(item_of(api.answer), _values(result, outcome, parts)) for result in outcome.results],
    }
    return json_response(filled(api.answer, values))


def _values(result: RankedText, outcome: RerankOutcome, parts: RerankParts) -> dict[str, Any]:
    """What an answer may have of a text."""
    likeness, text = relevance(result.score), parts.texts[result.index]
    return {
        "index": result.index,
        "sum": result.score,
        "relevance": likeness,
        "sum_or_relevance": result.score if parts.raw else likeness,
        "scores": scores_record(result.scores, outcome.sides),
        **({"text": text, "record": {"text": text}} if parts.repeat else {}),
    }
