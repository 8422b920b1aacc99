"""`POST /embed`."""

from __future__ import annotations

from fastapi import Request, Response

from tercet.models.representations import OUTPUTS
from tercet.service.answers.binary import MEDIA_TYPE, binary_pieces
from tercet.service.answers.embeddings import embeddings_json
from tercet.service.answers.pieces import response_of
from tercet.service.encoding.options import TextOptions
from tercet.service.http.negotiation import preferred_type
from tercet.service.routes.common import Services, TimeLimit, encoder_named, errors, router
from tercet.service.routes.texts import Fields, encoded_texts
from tercet.service.schemas.embed import EmbedRequest, EmbedResponse

JSON = "application/json"
FIELDS = Fields("inputs", outputs="outputs")

routes = router("embed")


@routes.post(
    "/embed",
    response_model=EmbedResponse,
    responses={
        200: {
            "description": "Embeddings, as JSON, or as one safetensors body where `Accept` prefers it.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        **errors(404, 422, 507),
    },
)
async def embed(body: EmbedRequest, request: Request, services: Services, deadline: TimeLimit) -> Response:
    """Encode texts into dense, sparse and ColBERT representations, in one pass.

    Where `Accept` prefers `application/x-safetensors` the answer is one binary body with the arrays `dense`,
    `sparse_indptr`, `sparse_token_ids`, `sparse_weights`, `colbert`, `colbert_offsets`, `tokens` and
    `truncated`. With another `dtype` than `float32` its metadata name it, and `int8` adds `dense_scales` and
    `colbert_scales`.
    """
    dtype = body.dtype or "float32"
    encoding = await encoder_named(services, body.model)
    info, slices = await encoded_texts(
        services,
        encoding,
        [body.inputs] if isinstance(body.inputs, str) else body.inputs,
        FIELDS,
        deadline,
        TextOptions(
            input_type=body.input_type or "document",
            outputs=body.outputs or OUTPUTS,
            max_length=body.max_length,
            truncate=body.truncate is not False,
            adapter=body.adapter,
        ),
        dimensions=body.dimensions,
        dtype=dtype,
        colbert_pool=body.colbert_pool or 1,
    )
    media_type = preferred_type(request.headers.getlist("accept"), (JSON, MEDIA_TYPE))
    if media_type == MEDIA_TYPE:
        pieces = binary_pieces(slices, info, services.pools.bodies, services.scratch, dtype)
    else:
        packed = body.encoding == "base64"
        pieces = embeddings_json(slices, info, encoding.tokenizer, packed=packed, dtype=dtype)
    with services.telemetry.stage("encode"):
        return await response_of(pieces, media_type, {"Vary": "Accept"})
