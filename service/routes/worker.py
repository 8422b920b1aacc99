"""What only encoder workers serve: the tokenizer, so that a search node splits texts as they do."""

from __future__ import annotations

from fastapi import Response

from service.routes.common import Services, router

routes = router("worker", 400, 401, 403, 413, 422, 503)


@routes.get(
    "/tokenizer",
    response_class=Response,
    responses={
        200: {
            "description": "tokenizer.json.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
    },
)
async def tokenizer(services: Services) -> Response:
    """The encoder's `tokenizer.json`."""
    content = await services.pools.operations.run(services.encoding.tokenizer.to_bytes)
    return Response(content, media_type="application/json")
