"""What an entry says of an API, whether it embeds or re-ranks, and the services whose clients call them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from tercet.models.representations import Output, Representations
from tercet.service.compat.shapes import CompatibleRequest, Request, Shape, type_of
from tercet.service.http.error_shapes import CohereError, JinaError, OllamaError, TeiError
from tercet.service.load.deadlines import Deadline
from tercet.service.routes.common import EDGE, Services, TimeLimit, router
from tercet.service.runtime import Runtime

ApiVersion = Annotated[
    str | None, Query(alias="api-version", description="Passed over; clients for Azure send it.")
]


async def _pass_over(_version: ApiVersion = None) -> None:
    """Takes what Azure's clients send with every request, and this server has no use for."""


Service = Callable[[], APIRouter]
"""Makes a group of routes whose errors have the shape that a service's clients expect."""

OPENAI: Service = partial(router, "openai", dependencies=[Depends(_pass_over)])
TEI: Service = partial(router, "tei", 401, 403, 413, 422, 424, 429, 503, shape=TeiError)
COHERE: Service = partial(router, "cohere", *EDGE, 503, shape=CohereError)
JINA: Service = partial(router, "jina", *EDGE, 503, shape=JinaError)
OLLAMA: Service = partial(router, "ollama", *EDGE, 503, shape=OllamaError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One operation of a service. name, about: in the description; also: paths that are not described."""

    service: Service
    name: str
    path: str
    about: str
    request: Request
    answer: Shape
    also: tuple[str, ...] = ()

    def routes(
        self, answered: Callable[[CompatibleRequest, Runtime, Deadline], Awaitable[Response]]
    ) -> APIRouter:
        """The routes of an API. answered: gives the answer to a body."""

        async def handle(body: Any, services: Services, deadline: TimeLimit) -> Response:
            return await answered(body, services, deadline)

        handle.__annotations__["body"] = self.request.model
        routes = self.service()
        for path in (*self.also, self.path):
            routes.add_api_route(
                path,
                handle,
                methods=["POST"],
                name=self.name,
                description=self.about,
                response_model=type_of(self.answer),
                include_in_schema=path == self.path,
            )
        return routes


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedApi(Api):
    """An API that embeds.

    output: what it gives of a text; together: writes the vectors of all texts at once, in some forms, where
    its answer has no list of them; compressed: whether its answer may be; whole_bytes: whether signs of the
    encoder's own size are refused, not padded, if they fill no bytes.
    """

    output: Output = "dense"
    together: Callable[[Sequence[Representations], Sequence[str]], Iterator[bytes]] | None = None
    compressed: bool = True
    whole_bytes: bool = False
