"""Cohere's APIs that embed and re-rank. https://docs.cohere.com/reference"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from tercet.service.compat.apis import COHERE, Api, EmbedApi
from tercet.service.compat.fields import (
    DIMENSIONS,
    DOCUMENTS,
    EXAMPLE,
    MODEL,
    NEW_ID,
    QUERY,
    RELEVANCE,
    RESULT,
    TEA,
    TOP_N,
    query_if,
)
from tercet.service.compat.request import Flag
from tercet.service.compat.shapes import CompatibleRequest, Shape, Slot, Take, answer, request
from tercet.service.compat.vectors import forms_json
from tercet.service.exceptions import InvalidRequestError
from tercet.service.schemas.base import WHOLE, counted


def cohere_meta(version: str, billed: str) -> Shape:
    """What answers of Cohere say of themselves. billed: the unit."""
    return {"api_version": {"version": version}, "billed_units": {billed: Slot("billed", int)}}


def _cohere_truncate(value: str | None, name: str) -> bool:
    if value == "START":
        raise InvalidRequestError(
            "truncate is START; this encoder cuts at the END, or refuses with NONE", name
        )
    return value != "NONE"


CohereForm = Literal["float", "base64", "binary", "ubinary", "int8", "uint8"]


class CohereTextPart(CompatibleRequest):
    """A text within an input."""

    type: Literal["text"]
    text: str


class CohereMixedInput(CompatibleRequest):
    """An input of parts, whose texts are joined."""

    content: Annotated[list[CohereTextPart], Field(min_length=1, max_length=100, fail_fast=True)]


COHERE_EMBED = EmbedApi(
    service=COHERE,
    name="cohere_embed",
    path="/v2/embed",
    about="Dense vectors in the shape of Cohere's API.",
    request=request(
        "CohereEmbedRequest",
        "Texts to embed, as Cohere's clients send them.",
        {
            "model": "tercet",
            "input_type": "search_document",
            "texts": [TEA],
            "embedding_types": ["float"],
        },
        texts=Take(
            "texts",
            Annotated[list[str], Field(fail_fast=True), counted("texts", "texts")],
            "Texts; or give `inputs`.",
        ),
        inputs=Take(
            "texts",
            Annotated[list[CohereMixedInput], Field(fail_fast=True), counted("texts", "texts")],
            "Inputs of parts, all of them texts.",
            read=lambda inputs, _: ["\n".join(part.text for part in mixed.content) for mixed in inputs or ()],
        ),
        model=MODEL,
        input_type=query_if(
            "search_query", str, "`search_query` is a query, anything else a document.", "search_document"
        ),
        embedding_types=Take(
            "forms",
            Annotated[list[CohereForm], Field(max_length=16, fail_fast=True)],
            "`float` by default. `int8` is each vector times 127 over its largest value, rounded, "
            "which keeps its direction; `uint8` the same plus 128. `ubinary` is the signs of the values, "
            "eight in a byte; `binary` the same less 128.",
        ),
        output_dimension=DIMENSIONS,
        truncate=Take(
            "truncate",
            Literal["NONE", "START", "END"],
            "`END` cuts longer texts, `NONE` refuses them; `START` is not offered.",
            "END",
            _cohere_truncate,
        ),
        max_tokens=Take(
            "max_length",
            Annotated[int, Field(ge=1), WHOLE],
            "Tokens of a text; by default the encoder's limit.",
        ),
    ),
    answer=answer(
        "CohereEmbedResponse",
        "Embeddings by type, in the order of the texts.",
        id=NEW_ID,
        response_type="embeddings_by_type",
        embeddings=Slot("vectors", dict[str, list[list[float]] | list[str]]),
        texts=Slot("texts", list[str]),
        meta=cohere_meta("2", "input_tokens"),
    ),
    together=forms_json,
)

COHERE_ANSWER = answer(
    "CohereRerankResponse",
    "Texts, best first.",
    id=NEW_ID,
    results=[RESULT],
    meta=cohere_meta("2", "search_units"),
)
COHERE_RERANK = Api(
    service=COHERE,
    name="cohere_rerank",
    path="/v2/rerank",
    about="Texts by their three-way score with a query, in the shape of Cohere's API.\n\n" + RELEVANCE,
    request=request(
        "CohereRerankRequest",
        "Texts to order, as Cohere's clients send them.",
        {"model": "tercet", **EXAMPLE, "top_n": 1},
        query=QUERY,
        documents=DOCUMENTS,
        model=MODEL,
        top_n=TOP_N,
        return_documents=Take("repeat", Flag, "Repeat each text in the answer (v1).", False),
    ),
    answer=COHERE_ANSWER,
)
COHERE_RERANK_V1 = replace(
    COHERE_RERANK,
    name="cohere_rerank_v1",
    path="/v1/rerank",
    also=("/v1/rerank/",),
    about="The same in the shape of version 1, which can repeat the texts.",
    answer=replace(COHERE_ANSWER, fields={**COHERE_ANSWER.fields, "meta": cohere_meta("1", "search_units")}),
)
