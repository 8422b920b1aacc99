"""The texts of a request: checked against the server's limits, then encoded in slices."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from tercet.index.token_vectors.pooling import pooled
from tercet.models.encoder import EncoderInfo
from tercet.models.errors import TextTooLongError, UnsupportedError
from tercet.models.representations import Output, Representations
from tercet.service.answers.dtypes import BITS, Dtype
from tercet.service.encoding.options import TextOptions
from tercet.service.encoding.service import EncodingService
from tercet.service.encoding.slices import encode_slices
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pool
from tercet.service.routes.common import check_characters
from tercet.service.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Fields:
    """What a request calls its texts, the longest that they may be, the values of a dense vector, and what
    chooses an encoder's outputs.
    """

    texts: str
    max_length: str = "max_length"
    dimensions: str = "dimensions"
    outputs: str = "model"


async def encoded_texts(
    services: Runtime,
    encoding: EncodingService,
    texts: Sequence[str],
    fields: Fields,
    deadline: Deadline,
    options: TextOptions,
    *,
    dimensions: int | None = None,
    dtype: Dtype = "float32",
    colbert_pool: int = 1,
) -> tuple[EncoderInfo, AsyncGenerator[Representations]]:
    """What identifies the encoder with the adapter, and what it makes of at least one text, slice by slice.

    dtype: that the vectors shall be written in; colbert_pool: tokens that share a token vector.
    Raises InvalidRequestError, which names the field, here or at the first slice, and what `encode_slices`
    raises.
    """
    limits = services.limits
    check_characters(texts, limits.characters, fields.texts)
    info = await encoding.info_of(options.adapter)
    _check_against(info, fields, options, dimensions)
    declared = encoding.tokenizer.settings.matryoshka_dimensions
    if dimensions is not None and declared and dimensions not in (*declared, info.dense_dimension):
        raise InvalidRequestError(
            f"{fields.dimensions} is {dimensions}; {info.name} was trained to be cut to "
            f"{', '.join(map(str, declared))}",
            fields.dimensions,
        )
    if dtype in BITS:
        _require_whole_bytes(info, options.outputs, dimensions)
    slices = encode_slices(
        encoding,
        services.pools.bodies,
        texts,
        options,
        request_tokens=limits.request_tokens,
        ticket=services.ticket(deadline),
    )
    if colbert_pool > 1:
        slices = _pooled(slices, services.pools.bodies, colbert_pool)
    return info, _named(slices, fields, dimensions)


async def _named(
    slices: AsyncGenerator[Representations], fields: Fields, dimensions: int | None
) -> AsyncGenerator[Representations]:
    """The slices with so many values of each dense vector; errors name the request's fields."""
    try:
        async with aclosing(slices):
            async for part in slices:
                yield part if dimensions is None else part.with_dimensions(dimensions)
    except TextTooLongError as error:
        raise InvalidRequestError(str(error), fields.texts, "text_too_long") from error
    except UnsupportedError as error:
        raise InvalidRequestError(str(error), fields.max_length) from error


async def _pooled(
    slices: AsyncGenerator[Representations], pool: Pool, tokens: int
) -> AsyncGenerator[Representations]:
    """The slices with one token vector for so many tokens."""
    async with aclosing(slices):
        async for part in slices:
            colbert = None if part.colbert is None else await pool.run(pooled, part.colbert, tokens)
            yield replace(part, colbert=colbert)


def _require_whole_bytes(info: EncoderInfo, outputs: Sequence[Output], dimensions: int | None) -> None:
    sizes = {"dense": dimensions or info.dense_dimension, "colbert": info.colbert_dimension}
    for output in info.given(outputs):
        if sizes.get(output, 0) % 8:
            raise InvalidRequestError(
                f"{output} vectors have {sizes[output]} values, whose signs make no whole bytes: take a "
                "multiple of 8 (dimensions), leave the output out, or ask for int8",
                "dtype",
                "unsupported",
            )


def _check_against(info: EncoderInfo, fields: Fields, options: TextOptions, dimensions: int | None) -> None:
    if not info.given(options.outputs):
        lacking = " and no ".join(dict.fromkeys(options.outputs))
        raise InvalidRequestError(
            f"{info.name} has no {lacking} side; it gives {' and '.join(info.sides)}",
            fields.outputs,
            "unsupported",
        )
    if dimensions is not None and dimensions > info.dense_dimension:
        raise InvalidRequestError(
            f"{fields.dimensions} is {dimensions}; {info.name} has {info.dense_dimension}", fields.dimensions
        )
    if options.max_length is not None and options.max_length > info.max_length:
        raise InvalidRequestError(
            f"{fields.max_length} is {options.max_length}; {info.name} takes at most {info.max_length} "
            "tokens",
            fields.max_length,
        )
