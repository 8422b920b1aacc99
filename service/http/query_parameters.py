"""Parameters of a query that a route does not have: refused, since what they were to do would not be done."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from tercet.service.exceptions import InvalidRequestError

SHOWN_CHARACTERS = 100


class QueryParameters:
    """Those that one route has, its dependencies' among them."""

    def __init__(self, route: APIRoute, repeated: Collection[str] = ()) -> None:
        """repeated: those that may be given several times."""
        self._repeated = frozenset(repeated)
        self._known = tuple(sorted(set(_names(route.dependant))))

    def check(self, request: Request) -> None:
        """Raises InvalidRequestError for a parameter that is not known, or is given twice."""
        if not request.scope["query_string"]:
            return
        seen: set[str] = set()
        for name, _ in request.query_params.multi_items():
            if name not in self._known:
                known = ", ".join(self._known)
                remedy = f"this path takes {known}" if known else "this path takes none: leave it out"
                shown = name[:SHOWN_CHARACTERS]
                raise InvalidRequestError(
                    f"there is no query parameter {shown!r}; {remedy}", shown, "unknown_parameter"
                )
            if name in seen and name not in self._repeated:
                raise InvalidRequestError(f"{name} is given twice; give it once", name)
            seen.add(name)


class QueryValues:
    """The values that a route's handler takes of a query."""

    def __init__(self, parameters: Sequence[ModelField]) -> None:
        self._parameters = {each.alias: each for each in parameters}
        self.names = frozenset(each.name for each in parameters)

    def of(self, query: bytes) -> dict[str, Any] | None:
        """Those of a query that differ from their defaults; None where something is wrong."""
        if not query:
            return {}
        values: dict[str, Any] = {}
        for alias, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            parameter = self._parameters.get(alias)
            if parameter is None or parameter.name in values:
                return None
            values[parameter.name], errors = parameter.validate(text)
            if errors:
                return None
        return values


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _names(inner)
