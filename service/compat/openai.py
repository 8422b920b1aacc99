"""OpenAI's API for embeddings. https://platform.openai.com/docs/api-reference/embeddings"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, Tag
from pydantic_core import PydanticCustomError

from tercet.service.compat.apis import OPENAI, EmbedApi
from tercet.service.compat.fields import (
    DIMENSIONS,
    MODEL,
    PACKED,
    SEVERAL,
    SHORT,
    TEA,
    query_if,
    texts,
    vector_list,
)
from tercet.service.compat.request import text_or_texts
from tercet.service.compat.shapes import Take, request
from tercet.service.invalid_values import TOKEN_IDS
from tercet.service.schemas.base import discriminated


def _openai_kind(value: object) -> str:
    """By the first item of a list: where it is none, texts are meant."""
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list):
        return "several ids"
    return "ids" if isinstance(first, int) and not isinstance(first, bool) else text_or_texts(value)


def _refuse_ids(_value: object) -> None:
    raise PydanticCustomError(
        TOKEN_IDS,
        "it has token ids, and this server takes texts: it has another vocabulary. LangChain's "
        "OpenAIEmbeddings sends texts with check_embedding_ctx_length=False",
    )


IntegerList = Annotated[list[int], Field(fail_fast=True)]
OpenAIInput = Annotated[
    Annotated[str, Tag("text")]
    | SEVERAL
    | Annotated[list[int], Field(fail_fast=True), BeforeValidator(_refuse_ids), Tag("ids")]
    | Annotated[list[IntegerList], Field(fail_fast=True), BeforeValidator(_refuse_ids), Tag("several ids")],
    *discriminated(_openai_kind, "a string or a list of strings"),
]
OPENAI_EMBEDDINGS = EmbedApi(
    service=OPENAI,
    name="openai_embeddings",
    path="/v1/embeddings",
    also=("/v1/embeddings/",),  # some clients join paths with a slash at the end
    about="Dense vectors in the shape of OpenAI's API. Longer texts are cut, as `/embed` does.",
    request=request(
        "OpenAIEmbeddingsRequest",
        "Texts to embed, as OpenAI's clients send them.",
        {"input": [TEA], "model": "tercet"},
        input=texts(
            OpenAIInput, "One text or several. Token ids are refused: they are of another vocabulary."
        ),
        model=MODEL,
        encoding_format=Take(
            "forms", PACKED, "`base64`: little-endian float32, as the official clients ask for.", "float"
        ),
        dimensions=DIMENSIONS,
        input_type=query_if(
            "query", SHORT, "Not of OpenAI's: `query` encodes queries, anything else documents."
        ),
    ),
    answer=vector_list("OpenAI", "OpenAIUsage"),
    compressed=False,
)
