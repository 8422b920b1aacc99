"""The one shape that every error has."""

from importlib.metadata import version
from typing import Any

import httpx


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error of an answer, after checking its shape."""
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    assert response.headers["tercet-version"] == version("tercet")
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"type", "message", "param", "code"}
    error: dict[str, Any] = body["error"]
    assert error["message"]
    assert "Traceback" not in error["message"]
    return error
