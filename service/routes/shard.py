"""What only routers ask for: a shard's part of searches. Bodies are those of `service/shard/messages.py`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response

from tercet.index.snapshot import Snapshot
from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.collections.readable import SearchTarget
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.deadlines import Deadline
from tercet.service.requests.binary_route import BinaryRoute
from tercet.service.routes.collections import Name
from tercet.service.routes.common import Services, TimeLimit, router
from tercet.service.runtime import Runtime
from tercet.service.shard.messages import COLLECTIONS

PATH = f"{COLLECTIONS}/{{name}}"
State = Annotated[str | None, Query(max_length=100)]
"""The state of a snapshot which a router goes on with, or of a description that it knows."""


async def _body(request: Request) -> bytes:
    return await request.body()


Body = Annotated[bytes, Depends(_body)]

routes = router("shard")


async def describe(name: Name, services: Services, deadline: TimeLimit) -> Response:
    """A collection's settings, and what is stored for searches."""
    target = await _opened(services, name)
    return _response(await services.pipeline.queue.run(deadline, services.shard.description, target))


async def candidates(
    name: Name,
    body: Body,
    services: Services,
    deadline: TimeLimit,
    tag: State = None,
    state: State = None,
) -> Response:
    """What this shard proposes for a query."""
    target = await _opened(services, name)
    return _response(
        await services.pipeline.queue.admitted(
            deadline, services.shard.candidates, name, target, body, tag, state
        )
    )


async def hits(name: Name, body: Body, services: Services, deadline: TimeLimit) -> Response:
    """The exact scores of what is left of a search's candidates."""
    return _response(await services.pipeline.queue.run(deadline, services.shard.hits, name, body))


async def parts(name: Name, body: Body, services: Services, deadline: TimeLimit) -> Response:
    """What hits alone are told of."""
    return _response(await services.pipeline.queue.run(deadline, services.shard.parts, name, body))


async def statistics(
    name: Name,
    body: Body,
    services: Services,
    deadline: TimeLimit,
    state: State = None,
    known: State = None,
) -> Response:
    """How many documents have each term, as far as the router does not know."""
    target = await _opened(services, name)
    return _response(
        await services.pipeline.queue.run(
            deadline, services.shard.statistics, name, target, body, state, known
        )
    )


async def facets(
    name: Name, body: Body, services: Services, deadline: TimeLimit, state: State = None
) -> Response:
    """Values of some fields, counted."""
    return await _read(services.shard.reading.facets, name, body, services, deadline, state)


async def explanations(
    name: Name, body: Body, services: Services, deadline: TimeLimit, state: State = None
) -> Response:
    """Why documents have their scores."""
    return await _read(services.shard.reading.explanations, name, body, services, deadline, state)


async def boosts(
    name: Name, body: Body, services: Services, deadline: TimeLimit, state: State = None
) -> Response:
    """What boosts add to documents."""
    return await _read(services.shard.reading.boosts, name, body, services, deadline, state)


async def examples(
    name: Name, body: Body, services: Services, deadline: TimeLimit, state: State = None
) -> Response:
    """Stored documents as queries."""
    return await _read(services.shard.reading.examples, name, body, services, deadline, state)


async def _read(
    read: Callable[[SearchTarget[Snapshot], bytes, str | None], bytes],
    name: str,
    body: bytes,
    services: Runtime,
    deadline: Deadline,
    state: str | None,
) -> Response:
    target = await _opened(services, name)
    return _response(await services.pipeline.queue.run(deadline, read, target, body, state))


async def _opened(services: Runtime, name: str) -> SearchTarget[Snapshot]:
    """The collection of a name. Raises InvalidRequestError where this server has it of others."""
    target = await services.readable.open_with_defaults(name)
    snapshot = target.snapshot
    if not isinstance(snapshot, Snapshot):
        raise InvalidRequestError(
            "this server has its collections of others, and is no shard; give a router the shards themselves"
        )
    return SearchTarget(snapshot, target.defaults, target.effort)


def _response(content: bytes) -> Response:
    return Response(content, media_type=MEDIA_TYPE)


OPERATIONS: Mapping[str, Callable[..., Coroutine[Any, Any, Response]]] = {
    "description": describe,
    "candidates": candidates,
    "hits": hits,
    "parts": parts,
    "statistics": statistics,
    "facets": facets,
    "explanations": explanations,
    "boosts": boosts,
    "examples": examples,
}

for path, handler in OPERATIONS.items():
    routes.add_api_route(
        f"{PATH}/{path}",
        handler,
        methods=["POST"],
        include_in_schema=False,
        route_class_override=BinaryRoute,
    )
