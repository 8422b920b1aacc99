"""Shapes of `/embed`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tercet.models.representations import InputType, Output
from tercet.service.answers.dtypes import Dtype
from tercet.service.schemas.base import WHOLE, AdapterName, ModelName, Request, Text, Texts, Usage, counted

LARGEST_POOL = 64  # tokens that may share a ColBERT vector


class EmbedRequest(Request):
    """Texts to encode."""

    list_field = "inputs"

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": ["Tea is brewed with hot water."], "outputs": ["dense"]}]}
    )

    inputs: Text | Annotated[Texts, counted("texts", "texts")] = Field(
        description="One text or several; their number is limited by the setting `max_texts`."
    )
    input_type: InputType | None = Field("document", description="Chooses the instruction prefix, if any.")
    outputs: Annotated[list[Output], Field(min_length=1, max_length=16, fail_fast=True)] | None = Field(
        None, description="Which representations; all three by default."
    )
    truncate: bool | None = Field(True, description="Cut longer texts; otherwise they are errors.")
    max_length: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        None, description="Tokens of a text, special tokens included; by default the encoder's limit."
    )
    dimensions: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        None, description="Keep this many values of the dense vector, normalized again."
    )
    model: ModelName | None = Field(
        None, description="The encoder, one that `/v1/models` lists; by default the server's own."
    )
    adapter: AdapterName | None = Field(
        None, description="An adapter, or a router that chooses one for each text; by default none."
    )
    encoding: Literal["float", "base64"] | None = Field(
        "float", description="`base64`: dense and colbert as little-endian values with their shape."
    )
    dtype: Dtype | None = Field(
        "float32",
        description="Numbers of dense and colbert: `float16`; `int8` with a scale for each vector; "
        "`ubinary`, the signs of the values, eight in a byte; `binary`, the same less 128.",
    )
    colbert_pool: Annotated[int, Field(ge=1, le=LARGEST_POOL), WHOLE] | None = Field(
        1,
        description="How many tokens share one ColBERT vector: the mean of a cluster by Ward's criterion, of "
        "length 1.",
    )


class PackedArray(BaseModel):
    """An array as base64 of its little-endian float32 values, row by row."""

    data: str = Field(description="Base64 of the values.")
    shape: list[int] = Field(description="Rows and columns, or one length.")
    dtype: Literal["float32"] = "float32"


class PackedValues(BaseModel):
    """An array as base64 of its little-endian values, row by row."""

    data: str = Field(description="Base64 of the values.")
    shape: list[int] = Field(description="Rows and columns, or one length.")
    dtype: Literal["float32", "float16", "int8", "uint8"] = Field(
        description="`int8` of binary, `uint8` of ubinary."
    )


class SparseEmbedding(BaseModel):
    """Lexical weights of a text; ids ascend, and the three lists go together."""

    token_ids: list[int]
    weights: list[float]
    tokens: list[str]


class WeighedAdapter(BaseModel):
    """An adapter, null for the base, and its weight for a text; a text's weights sum to 1."""

    adapter: str | None
    weight: float


class Embedding(BaseModel):
    """What was asked for of one text."""

    dense: list[float] | PackedValues | None = Field(None, description="Unit length, in float32.")
    dense_scale: float | None = Field(None, description="With `int8`: what turns its values back.")
    sparse: SparseEmbedding | None = None
    colbert: list[list[float]] | PackedValues | None = Field(None, description="One unit vector per token.")
    colbert_scales: list[float] | PackedValues | None = Field(
        None, description="With `int8`: one scale for each token vector."
    )
    tokens: int = Field(description="Tokens encoded, special tokens included.")
    truncated: bool = Field(description="Whether the text was longer.")
    adapter: str | None = Field(
        None, description="What a router chose, null for the base; only where a hard router was asked for."
    )
    adapters: list[WeighedAdapter] | None = Field(
        None, description="What the text went through; only where a soft router was asked for."
    )


class EmbedResponse(BaseModel):
    """One embedding for each text, in order."""

    model: str
    adapter: str | None = Field(
        description="The adapter or router that was asked for; of a fixed router the adapter that it chose."
    )
    fingerprint: str = Field(description="That of the encoder with the adapter.")
    usage: Usage
    embeddings: list[Embedding]
