"""Shapes of the routes of Text Embeddings Inference."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Tag

from tercet.service.compat.request import CompatibleRequest, text_or_texts
from tercet.service.schemas.base import WHOLE, counted, told_apart
from tercet.service.schemas.search import TokenId

Direction = Literal["Left", "Right", "left", "right"]
TokenIds = Annotated[list[TokenId], Field(fail_fast=True)]


def _text_or_ids(value: object) -> str:
    return "text" if isinstance(value, str) else "ids" if isinstance(value, list) else ""


def _kind(value: object) -> str:
    """Ids of one text are a list of numbers."""
    if isinstance(value, list) and value and isinstance(value[0], int | float):
        return "ids"
    return "text" if isinstance(value, str) else "several" if isinstance(value, list) else ""


OneInput = Annotated[
    Annotated[str, Tag("text")] | Annotated[TokenIds, Tag("ids")],
    *told_apart(_text_or_ids, "a string or a list of token ids"),
]
Inputs = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[TokenIds, Tag("ids")]
    | Annotated[list[OneInput], Field(fail_fast=True), counted("texts", "texts"), Tag("several")],
    *told_apart(_kind, "a string, a list of strings, or token ids"),
]
TextList = Annotated[list[str], Field(fail_fast=True)]


class TeiTruncation(CompatibleRequest):
    """How longer texts are treated."""

    truncate: bool | None = Field(
        None, description="false refuses texts that are too long, instead of a cut."
    )
    truncation_direction: Direction | None = Field(
        "Right", description="The end of a longer text that is cut; `Left` keeps its last words."
    )


class TeiInputs(TeiTruncation):
    """Texts to encode, as clients of Text Embeddings Inference send them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["Tea is brewed with hot water."]}]})

    inputs: Inputs = Field(
        description="One text or several, or their token ids in this encoder's vocabulary, which are read "
        "back as text."
    )
    prompt_name: str | None = Field(None, description="`query` is a query, anything else a document.")


class TeiEmbedRequest(TeiInputs):
    """Texts whose dense vectors are wanted."""

    normalize: bool | None = Field(True, description="Without effect: the encoder's vectors have length 1.")
    dimensions: Annotated[int, Field(ge=0), WHOLE] | None = Field(
        None,
        description="Keep this many values of each vector, normalized again; 0, or more than there are, "
        "keeps all.",
    )


class TeiSparseValue(BaseModel):
    """A lexical weight."""

    index: int
    value: float


class TeiRerankRequest(TeiTruncation):
    """Texts to order, as clients of Text Embeddings Inference send them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "how is tea made", "texts": ["Tea is brewed with hot water.", "Coffee is ground."]}
            ]
        }
    )

    query: str
    texts: Annotated[TextList, counted("documents", "texts")]
    raw_scores: bool | None = Field(
        False, description="The three-way sum itself, instead of a value from 0 to 1."
    )
    return_text: bool | None = Field(False, description="Repeat each text in the answer.")


class TeiRank(BaseModel):
    """A text of the request by its place."""

    index: int
    score: float
    text: str | None = None


class TeiTokenizeRequest(CompatibleRequest):
    """Texts to split into tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": "Tea is brewed."}]})

    inputs: Annotated[
        Annotated[str, Tag("text")] | Annotated[TextList, counted("texts", "texts"), Tag("texts")],
        *told_apart(text_or_texts, "a string or a list of strings"),
    ]
    add_special_tokens: bool | None = True
    prompt_name: str | None = Field(None, description="`query` is a query, anything else a document.")


class TeiSimilarityInputs(CompatibleRequest):
    """A sentence, and those that it is compared with."""

    source_sentence: str
    sentences: Annotated[list[str], Field(min_length=1, fail_fast=True), counted("texts", "texts")]


class TeiSimilarityParameters(TeiTruncation):
    """How the sentences are encoded."""

    prompt_name: str | None = Field(None, description="`query` is a query, anything else a document.")


NO_PARAMETERS = TeiSimilarityParameters.model_validate({})


class TeiSimilarityRequest(CompatibleRequest):
    """Sentences to compare with one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "inputs": {
                        "source_sentence": "Brewing tea.",
                        "sentences": ["Hot water.", "A steam engine."],
                    }
                }
            ]
        }
    )

    inputs: TeiSimilarityInputs
    parameters: TeiSimilarityParameters | None = None


def _ids_of_one(value: object) -> str:
    if not isinstance(value, list):
        return ""
    return "several" if value and isinstance(value[0], list) else "ids"


class TeiDecodeRequest(CompatibleRequest):
    """Token ids to read back as text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [[2045, 2003], [4248]]}]})

    ids: Annotated[
        Annotated[TokenIds, Tag("ids")]
        | Annotated[list[TokenIds], Field(fail_fast=True), counted("texts", "texts"), Tag("several")],
        *told_apart(_ids_of_one, "a list of token ids, or a list of such lists"),
    ]
    skip_special_tokens: bool | None = Field(True, description="false keeps them, such as [CLS].")


class TeiToken(BaseModel):
    """A token; start and stop are characters of its text, null for a special token."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class TeiInfo(BaseModel):
    """What this server is, as Text Embeddings Inference says it."""

    model_id: str
    model_sha: str | None
    model_dtype: str
    served_model_name: str
    model_type: dict[str, Any]
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: int | None
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str
    sha: str | None
    docker_label: str | None
