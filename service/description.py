"""The OpenAPI description of an application: FastAPI's of its routes, with keys, errors and examples."""

from __future__ import annotations

import threading
from itertools import chain
from typing import Any

import orjson
from fastapi import FastAPI
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response

from tercet.service.http.error_shapes import CohereError, DifyError, JinaError, OllamaError, TeiError
from tercet.service.requests.keys import KEY, is_open
from tercet.service.runtime import Runtime
from tercet.service.schemas.errors import REFERENCE, ErrorResponse
from tercet.service.schemas.examples import with_examples

PATH = "/openapi.json"
SHAPES = (ErrorResponse, TeiError, CohereError, JinaError, OllamaError, DifyError)


class Description:
    """Made when it is first asked for, since it takes half a second, which few servers ever need."""

    def __init__(self, app: FastAPI, *, needs_key: bool) -> None:
        """app: whose `openapi` becomes this one, and gets a route for it. needs_key: whether keys are set."""
        self._describe = app.openapi
        self._needs_key = needs_key
        self._made: dict[str, Any] | None = None
        self._lock = threading.Lock()
        app.openapi = self.described  # type: ignore[method-assign]  # as FastAPI documents
        app.add_route(PATH, self._answer, include_in_schema=False)

    def described(self) -> dict[str, Any]:
        """The description. Blocking; threads may share it."""
        with self._lock:
            if self._made is None:
                self._made = _completed(self._describe(), needs_key=self._needs_key)
            return self._made

    async def _answer(self, request: Request) -> Response:
        runtime: Runtime = request.app.state.runtime
        content = await runtime.pools.operations.run(lambda: orjson.dumps(self.described()))
        return Response(content, media_type="application/json")


def _completed(description: dict[str, Any], *, needs_key: bool) -> dict[str, Any]:
    """FastAPI's description with what routes only name: the shapes of errors, and that a key is needed."""
    components, paths = description["components"], description["paths"]
    text = orjson.dumps(paths).decode()
    named = [shape for shape in SHAPES if f'"{REFERENCE.format(model=shape.__name__)}"' in text]
    _, errors = models_json_schema([(shape, "serialization") for shape in named], ref_template=REFERENCE)
    components["schemas"] = dict(sorted({**components["schemas"], **errors["$defs"]}.items()))
    if needs_key:
        components["securitySchemes"] = KEY
        closed = (methods for path, methods in paths.items() if not is_open(path))
        for operation in chain.from_iterable(methods.values() for methods in closed):
            operation["security"] = [{name: [] for name in KEY}]
    return with_examples(description)
