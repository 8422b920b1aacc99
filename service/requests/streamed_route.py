"""Routes that take a file as their body, piece by piece, so that it is never whole in memory."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from tercet.service.errors import Failure
from tercet.service.http.query_parameters import QueryParameters
from tercet.service.requests.json_route import JsonRoute, from_a_foreign_page

STREAMED = "streamed"  # where a request's scope says so, among its `state`
FORM = "multipart/form-data"
FILE = "application/octet-stream"
# What browsers send to any server from any page without asking it: https://fetch.spec.whatwg.org/#cors-safelisted-request-header
SIMPLE = frozenset({"", "text/plain", "application/x-www-form-urlencoded", FORM})


class StreamedRoute(JsonRoute):
    """Tells the edge to hand the body on as it arrives. Query parameters that are lists may be repeated."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of this route."""
        handle = APIRoute.get_route_handler(self)
        parameters = QueryParameters(self, _lists(self))

        async def handle_streamed(request: Request) -> Response:
            parameters.check(request)
            given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if given == FORM:
                said = f"the body's type is {FORM}; send the file itself as the body (curl -T FILE)"
                return Failure(400, said, "unsupported_content_type").response()
            if given in SIMPLE and from_a_foreign_page(request):
                said = (
                    f"the type is {given or 'none'}; from a page of another server send Content-Type: {FILE}"
                )
                return Failure(400, said, "unsupported_content_type").response()
            request.scope["state"][STREAMED] = True
            return await handle(request)

        return handle_streamed


def _lists(route: APIRoute) -> list[str]:
    """The names of query parameters of a route that take several values."""
    names, waiting = list[str](), [route.dependant]
    while waiting:
        dependant = waiting.pop()
        parameters = dependant.query_params
        names += [query.alias for query in parameters if "list" in str(query.field_info.annotation)]
        waiting += dependant.dependencies
    return names
