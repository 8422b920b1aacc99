"""`POST /embed`."""

from __future__ import annotations

from fastapi import Request, Response

from models.encoder import EncoderInfo
from models.errors import TextTooLongError, UnsupportedError
from models.representations import OUTPUTS
from service.binary import MEDIA_TYPE, to_bytes
from service.embeddings import embeddings_json, values_of
from service.exceptions import InvalidRequestError
from service.http.negotiation import preferred_type
from service.routes.common import Services, check_characters, check_count, errors, router
from service.schemas.embed import EmbedRequest, EmbedResponse

JSON = "application/json"
LARGE_VALUES = 20_000  # from here on, writing an answer would hold up other requests for milliseconds

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
async def embed(body: EmbedRequest, request: Request, services: Services) -> Response:
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
    try:
        with services.telemetry.stage("encode"):
            representations = await encoding.encode(
                texts,
                body.input_type or "document",
                body.outputs or OUTPUTS,
                max_length=body.max_length,
                truncate=body.truncate is not False,
                adapter=body.adapter,
            )
    except TextTooLongError as error:
        raise InvalidRequestError(str(error), "inputs", "text_too_long") from error
    except UnsupportedError as error:
        raise InvalidRequestError(str(error), "max_length") from error
    if body.dimensions is not None:
        representations = representations.with_dimensions(body.dimensions)
    tokenizer, packed = encoding.tokenizer, body.encoding == "base64"
    media_type = preferred_type(request.headers.getlist("accept"), (JSON, MEDIA_TYPE))

    def write() -> Response:
        if media_type == MEDIA_TYPE:
            metadata = {"model": info.name, "fingerprint": info.fingerprint}
            if info.adapter is not None:
                metadata["adapter"] = info.adapter
            content = to_bytes(representations, metadata)
        else:
            content = embeddings_json(representations, info, tokenizer, packed=packed)
        return Response(content, headers={"Vary": "Accept"}, media_type=media_type)

    return await services.pools.answers.run(write) if values_of(representations) > LARGE_VALUES else write()


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
