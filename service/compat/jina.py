"""Jina's APIs that embed and re-rank. https://api.jina.ai/redoc"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, Tag

from tercet.service.compat.apis import JINA, Api, EmbedApi
from tercet.service.compat.fields import (
    DIMENSIONS,
    DOCUMENTS,
    EXAMPLE,
    INDEX,
    MODEL,
    NAME,
    NORMALIZED,
    PACKED,
    RELEVANCE,
    RESULT,
    SHORT,
    TEA,
    TOKENS,
    TOP_N,
    cutting,
    query_if,
    refused,
    texts,
    vector_list,
)
from tercet.service.compat.request import Flag, TextOrObject, text_or_texts, texts_of
from tercet.service.compat.shapes import REQUIRED, Slot, Take, answer, request
from tercet.service.schemas.base import counted, discriminated

JINA_USAGE = answer("JinaUsage", "What a request cost.", total_tokens=TOKENS)

VectorForm = Literal["float", "base64", "binary", "ubinary"]
VectorForms = Annotated[
    Annotated[VectorForm, Tag("text")]
    | Annotated[list[VectorForm], Field(min_length=1, max_length=4, fail_fast=True), Tag("texts")],
    *discriminated(text_or_texts, "float, base64, binary or ubinary"),
]
JinaTexts = Annotated[
    list[TextOrObject], Field(min_length=1, fail_fast=True), counted("texts", "texts"), Tag("texts")
]
JinaInput = Annotated[
    Annotated[str, Tag("text")] | JinaTexts, *discriminated(text_or_texts, "a string or a list of texts")
]
JINA_EMBEDDINGS = EmbedApi(
    service=JINA,
    name="jina_embeddings",
    path="/jina/v1/embeddings",
    about="Dense vectors in the shape of Jina's API.",
    request=request(
        "JinaEmbeddingsRequest",
        "Texts to embed, as Jina's clients send them.",
        {"model": "tercet", "task": "retrieval.passage", "input": [TEA]},
        input=texts(JinaInput, "A text or several, or objects with a `text`.", texts_of),
        model=MODEL,
        task=query_if(
            "*.query", SHORT, "One that ends in `.query` encodes queries, anything else documents."
        ),
        dimensions=DIMENSIONS,
        embedding_type=Take("forms", VectorForms, "One of them; `base64`: little-endian float32.", "float"),
        normalized=NORMALIZED,
        truncate=cutting("false refuses longer texts, which are cut else.", True),
        late_chunking=refused(
            "Refused where true.",
            "this server encodes each text by itself: leave it out, or put whole documents into a "
            "collection with windows",
        ),
        return_multivector=refused(
            "Refused where true; `/jina/v1/multi-vector` gives such vectors.",
            "ask /jina/v1/multi-vector, which gives a vector for each token",
        ),
    ),
    answer=vector_list("Jina", "JinaEmbeddingsUsage"),
    compressed=False,
    whole_bytes=True,
)
JINA_MULTI_VECTOR = EmbedApi(
    service=JINA,
    name="jina_multi_vector",
    path="/jina/v1/multi-vector",
    about="ColBERT vectors in the shape of Jina's API: one for each token of a text.",
    request=request(
        "JinaMultiVectorRequest",
        "Texts to encode token by token, as Jina's clients send them.",
        {"model": "tercet", "input": [TEA], "input_type": "document", "embedding_type": "float"},
        input=texts(JinaTexts, "Texts, or objects with a `text`.", texts_of),
        model=MODEL,
        input_type=query_if("query", Literal["document", "query"], default="document"),
        embedding_type=Take("forms", PACKED, "`base64`: each vector as little-endian float32.", "float"),
        dimensions=replace(
            DIMENSIONS,
            to="token_dimensions",
            about="Only the encoder's own: ColBERT vectors cannot be cut.",
        ),
    ),
    answer=answer(
        "JinaMultiVectorResponse",
        "ColBERT vectors in the order of the texts.",
        model=NAME,
        object="list",
        data=[
            answer(
                "JinaMultiVector",
                "The ColBERT vectors of one text.",
                object="embeddings",
                index=INDEX,
                embeddings=Slot("vectors", list[list[float]] | list[str]),
            )
        ],
        usage=JINA_USAGE,
    ),
    output="colbert",
)

JINA_RERANK = Api(
    service=JINA,
    name="jina_rerank",
    path="/jina/v1/rerank",
    about="Texts by their three-way score with a query, in the shape of Jina's API.\n\n" + RELEVANCE,
    request=request(
        "JinaRerankRequest",
        "Texts to order, as Jina's clients send them.",
        {"model": "tercet", **EXAMPLE, "top_n": 1},
        query=Take(
            "query",
            TextOrObject,
            "A text, or an object with a `text`.",
            REQUIRED,
            lambda query, name: texts_of([query], name)[0],
        ),
        documents=DOCUMENTS,
        model=MODEL,
        top_n=TOP_N,
        return_documents=Take("repeat", Flag, "Repeat each text in the answer.", True),
    ),
    answer=answer("JinaRerankResponse", "Texts, best first.", model=NAME, usage=JINA_USAGE, results=[RESULT]),
)
