"""The APIs of Text Embeddings Inference that embed and re-rank.

https://huggingface.github.io/text-embeddings-inference
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, Field, Tag

from tercet.service.compat.apis import TEI, Api, EmbedApi
from tercet.service.compat.fields import (
    EXAMPLE,
    INDEX,
    NORMALIZED,
    QUERY,
    RANKED,
    TEA,
    VECTOR,
    VECTORS,
    cutting,
    query_if,
    texts,
)
from tercet.service.compat.openai import OPENAI_EMBEDDINGS
from tercet.service.compat.request import TokenIds, text_or_texts
from tercet.service.compat.shapes import REQUIRED, IfKnown, Slot, Take, answer, request
from tercet.service.compat.vectors import similarities_json
from tercet.service.schemas.base import WHOLE, counted, discriminated

TEI_PROMPT = query_if("query", str, "`query` is a query, anything else a document.")
TEI_TRUNCATION = {
    "truncate": cutting("false refuses texts that are too long, instead of a cut."),
    "truncation_direction": Take(
        "last_words",
        Literal["Left", "Right", "left", "right"],
        "The end of a longer text that is cut; `Left` keeps its last words.",
        "Right",
        lambda value, _: value in ("Left", "left"),
    ),
}

TEI_OPENAI_EMBEDDINGS = replace(
    OPENAI_EMBEDDINGS,
    service=TEI,
    name="tei_openai_embeddings",
    path="/tei/v1/embeddings",
    also=(),
    about="Dense vectors in the shape of OpenAI's API, which Text Embeddings Inference has, too.",
)


def _tei_kind(value: object) -> str:
    """Ids of one text are a list of numbers."""
    if isinstance(value, list):
        return "ids" if value and isinstance(value[0], int | float) else "several"
    return text_or_texts(value)


TextOrIds = Annotated[
    Annotated[str, Tag("text")] | Annotated[TokenIds, Tag("texts")],
    *discriminated(text_or_texts, "a string or a list of token ids"),
]
TeiInput = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[TokenIds, Tag("ids")]
    | Annotated[list[TextOrIds], Field(fail_fast=True), counted("texts", "texts"), Tag("several")],
    *discriminated(_tei_kind, "a string, a list of strings, or token ids"),
]
TEI_INPUTS = request(
    "TeiInputs",
    "Texts to encode, as clients of Text Embeddings Inference send them.",
    {"inputs": [TEA]},
    **TEI_TRUNCATION,
    inputs=texts(
        TeiInput,
        "One text or several, or their token ids in this encoder's vocabulary, which are read back as text.",
    ),
    prompt_name=TEI_PROMPT,
)


class TeiSparseValue(BaseModel):
    """A lexical weight."""

    index: int
    value: float


TEI_SPARSE = EmbedApi(
    service=TEI,
    name="tei_embed_sparse",
    path="/tei/embed_sparse",
    about="Lexical weights by token id.",
    request=TEI_INPUTS,
    answer=[Slot("vectors", list[TeiSparseValue])],
    output="sparse",
)
TEI_ALL = replace(
    TEI_SPARSE,
    name="tei_embed_all",
    path="/tei/embed_all",
    about="ColBERT vectors, one for each token.",
    answer=[VECTORS],
    output="colbert",
)
TEI_EMBED = EmbedApi(
    service=TEI,
    name="tei_embed",
    path="/tei/embed",
    also=("/tei", "/tei/"),  # clients that are given the base address alone ask it
    about="Dense vectors.",
    request=request(
        "TeiEmbedRequest",
        "Texts whose dense vectors are wanted.",
        {"inputs": [TEA]},
        **TEI_INPUTS.fields,
        normalize=NORMALIZED,
        dimensions=Take(
            "dimensions_if_fewer",
            Annotated[int, Field(ge=0), WHOLE],
            "Keep this many values of each vector, normalized again; 0, or more than there are, keeps all.",
        ),
    ),
    answer=[VECTOR],
)
TEI_COMPARED = request(
    "TeiSimilarityInputs",
    "A sentence, and those that it is compared with.",
    None,
    source_sentence=Take("compared", str, default=REQUIRED),
    sentences=texts(Annotated[list[str], Field(min_length=1, fail_fast=True), counted("texts", "texts")]),
)
TEI_PARAMETERS = request(
    "TeiSimilarityParameters",
    "How the sentences are encoded.",
    None,
    **TEI_TRUNCATION,
    prompt_name=TEI_PROMPT,
)
TEI_SIMILARITY = EmbedApi(
    service=TEI,
    name="tei_similarity",
    path="/tei/similarity",
    about="The cosine of the dense vectors of a sentence and of each of the others.",
    request=request(
        "TeiSimilarityRequest",
        "Sentences to compare with one.",
        {"inputs": {"source_sentence": "Brewing tea.", "sentences": ["Hot water.", "A steam engine."]}},
        inputs=Take(None, TEI_COMPARED, default=REQUIRED),
        parameters=Take(None, TEI_PARAMETERS),
    ),
    answer=VECTOR,
    together=similarities_json,
)

TEI_RERANK = Api(
    service=TEI,
    name="tei_rerank",
    path="/tei/rerank",
    about="Texts by their three-way score with a query, best first.",
    request=request(
        "TeiRerankRequest",
        "Texts to order, as clients of Text Embeddings Inference send them.",
        {"query": EXAMPLE["query"], "texts": RANKED},
        **TEI_TRUNCATION,
        query=QUERY,
        texts=Take(
            "texts",
            Annotated[list[str], Field(fail_fast=True), counted("documents", "texts")],
            default=REQUIRED,
        ),
        raw_scores=Take("raw", bool, "The three-way sum itself, instead of a value from 0 to 1.", False),
        return_text=Take("repeat", bool, "Repeat each text in the answer.", False),
    ),
    answer=[
        answer(
            "TeiRank",
            "A text of the request by its place.",
            index=INDEX,
            score=Slot("sum_or_relevance", float),
            text=IfKnown(Slot("text", str)),
        )
    ],
)
