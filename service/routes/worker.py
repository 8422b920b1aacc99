"""What only encoder workers serve: the tokenizer, so that a search node splits texts as they do."""

from __future__ import annotations

from fastapi import Response

from tercet.models.tokens.json_vocabulary import TOKENIZER_JSON
from tercet.service.routes.common import Services, router

JSON, BINARY = "application/json", "application/octet-stream"

routes = router("worker", 400, 401, 403, 413, 422, 503)


@routes.get(
    "/tokenizer",
    response_class=Response,
    responses={
        200: {
            "description": "The checkpoint's tokenizer.json or sentencepiece.bpe.model.",
            "content": {
                JSON: {"schema": {"type": "object"}},
                BINARY: {"schema": {"type": "string", "format": "binary"}},
            },
        },
    },
)
async def tokenizer(services: Services) -> Response:
    """The encoder's `tokenizer.json`, or its `sentencepiece.bpe.model`."""
    tokenizer = services.encoding.tokenizer
    content = await services.pools.operations.run(tokenizer.to_bytes)
    return Response(content, media_type=JSON if tokenizer.file_name == TOKENIZER_JSON else BINARY)
