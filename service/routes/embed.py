"""`POST /embed`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import Request, Response

from models.encoder import EncoderInfo
from models.errors import TextTooLongError, UnsupportedError
from models.representations import OUTPUTS, Representations
from service.answers.binary import MEDIA_TYPE, binary_pieces
from service.answers.embeddings import embeddings_json
from service.answers.pieces import response_of
from service.encoding.slices import encode_slices
from service.exceptions import InvalidRequestError
from service.http.negotiation import preferred_type
from service.load.admission import Ticket
from service.routes.common import Services, TimeLimit, check_characters, check_count, errors, router
from service.schemas.embed import EmbedRequest, EmbedResponse

JSON = "application/json"

routes = router("embed")


@routes.post(
    "/embed",
    response_model=EmbedResponse,
    responses={
        200: {
            "description": "Embeddings, as JSON, or as one safetensors body where `Accept` prefers it.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        **errors(404, 422),
    },
)
async def embed(body: EmbedRequest, request: Request, services: Services, deadline: TimeLimit) -> Response:
    """Encode texts into dense, sparse and ColBERT representations, in one pass.

    Where `Accept` prefers `application/x-safetensors` the answer is one binary body with the arrays `dense`,
    `sparse_indptr`, `sparse_token_ids`, `sparse_weights`, `colbert`, `colbert_offsets`, `tokens` and
    `truncated`.
    """
    encoding, limits = services.encoding, services.limits
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    check_count(texts, limits.texts, "inputs", "max_texts")
    check_characters(texts, limits.characters, "inputs")
    info = await encoding.info_of(body.adapter)
    _check_against(info, body)
    slices = encode_slices(
        encoding,
        services.pools.bodies,
        texts,
        body.input_type or "document",
        body.outputs or OUTPUTS,
        request_tokens=limits.request_tokens,
        max_length=body.max_length,
        truncate=body.truncate is not False,
        adapter=body.adapter,
        ticket=Ticket(deadline),
    )
    if body.dimensions is not None:
        slices = _with_dimensions(slices, body.dimensions)
    media_type = preferred_type(request.headers.getlist("accept"), (JSON, MEDIA_TYPE))
    if media_type == MEDIA_TYPE:
        pieces = binary_pieces(slices, info, services.pools.bodies, services.scratch)
    else:
        pieces = embeddings_json(slices, info, encoding.tokenizer, packed=body.encoding == "base64")
    try:
        with services.telemetry.stage("encode"):
            return await response_of(pieces, media_type, {"Vary": "Accept"})
    except TextTooLongError as error:
        raise InvalidRequestError(str(error), "inputs", "text_too_long") from error
    except UnsupportedError as error:
        raise InvalidRequestError(str(error), "max_length") from error


async def _with_dimensions(
    slices: AsyncGenerator[Representations], dimensions: int
) -> AsyncGenerator[Representations]:
    async with aclosing(slices):
        async for part in slices:
            yield part.with_dimensions(dimensions)


def _check_against(info: EncoderInfo, body: EmbedRequest) -> None:
    if body.dimensions is not None and body.dimensions > info.dense_dimension:
        raise InvalidRequestError(
            f"dimensions is {body.dimensions}; {info.name} has {info.dense_dimension}", "dimensions"
        )
    if body.max_length is not None and body.max_length > info.max_length:
        raise InvalidRequestError(
            f"max_length is {body.max_length}; {info.name} takes at most {info.max_length} tokens",
            "max_length",
        )
