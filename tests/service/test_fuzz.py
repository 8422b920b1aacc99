"""About two thousand random and hostile requests against a real server: no 5xx, no hang, one error shape.

Half of them are made from the OpenAPI description, half by a generator of what no description allows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from service.app import create_app
from service.settings import Settings

EXAMPLES_OF_EACH_ROUTE_AND_MODE = 40
HOSTILE_REQUESTS = 1300
SEED = 20260911

OPERATIONS = {
    (path, method): operation
    for path, methods in create_app(Settings()).openapi()["paths"].items()
    for method, operation in methods.items()
}
VALID = [(path, method, GenerationMode.POSITIVE) for path, method in OPERATIONS]
# What breaks the description can be made only where it says something about names or bodies.
BROKEN = [
    (path, method, GenerationMode.NEGATIVE)
    for (path, method), operation in OPERATIONS.items()
    if "requestBody" in operation or "{name}" in path
]


@pytest.fixture(scope="module")
def described(server: str) -> Any:
    """The server's description of itself."""
    return schemathesis.openapi.from_url(f"{server}/openapi.json")


@pytest.mark.parametrize(("path", "method", "mode"), VALID + BROKEN)
def test_answers_conform_to_the_description(
    described: Any, path: str, method: str, mode: GenerationMode
) -> None:
    @given(case=described[path][method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES_OF_EACH_ROUTE_AND_MODE,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def conforms(case: Any) -> None:
        # A description cannot tell dimensions, fields and limits: some requests that fit it are 422.
        response = case.call_and_validate(timeout=20, excluded_checks=[positive_data_acceptance])
        if response.status_code >= 400:
            check_error(response.status_code, response.headers, response.json())

    conforms()


def check_error(status: int, headers: Any, body: Any) -> None:
    """The one error shape."""
    assert status < 500, body
    assert "application/json" in str(headers["content-type"])
    assert set(body) == {"error"}
    assert set(body["error"]) == {"type", "message", "param", "code"}
    assert isinstance(body["error"]["message"], str)
    assert isinstance(body["error"]["code"], str)


class Hostile:
    """A seeded source of requests that no honest client sends."""

    values: tuple[bytes, ...] = (
        *(
            b"null",
            b"true",
            b"-1",
            b"0",
            b"1e400",
            b"NaN",
            b"Infinity",
            b"1" + b"0" * 400,
            b"0.1",
            b"99999999999999999999",
        ),
        *(
            b'""',
            b'"demo"',
            b'"sum"',
            b'"\\u0000"',
            b'"\\ud800"',
            b'"\\udfff\\ud800"',
            b'"\xff"',
            b'"' + b"A" * 5000 + b'"',
        ),
        *(
            b"[]",
            b"{}",
            b"[[]]",
            b'{"":{}}',
            b"[1e39]",
            b"[null]",
            b'{"dense":[]}',
            b'{"dense":1,"dense":-1}',
        ),
        *(
            b'{"and":[]}',
            b'{"not":{"not":{"exists":"x"}}}',
            b'{"eq":{"year":1e308}}',
            b'{"in":{"year":[true]}}',
        ),
        b'{"token_ids":[1],"weights":[1]}',
        b'"../../etc/passwd"',
        b'"%2e%2e%2f"',
        '"🍵\u202e\ufeff"'.encode(),
    )
    fields: tuple[str, ...] = (
        *("inputs", "input_type", "outputs", "truncate", "max_length", "dimensions", "encoding"),
        *("collection", "query", "top_k", "weights", "candidates", "filter", "explain", "search_options"),
        *(
            "documents",
            "top_n",
            "dense_kind",
            "token_codec",
            "fields",
            "source",
            "encoder",
            "__proto__",
            "$ref",
        ),
    )
    valid: tuple[tuple[str, str, bytes], ...] = (
        ("POST", "/embed", b'{"inputs": ["tea", "hot water"]}'),
        (
            "POST",
            "/search",
            b'{"collection": "demo", "query": "hot tea", "filter": {"gte": {"year": 1}}, "explain": true}',
        ),
        ("POST", "/rerank", b'{"query": "tea", "documents": ["tea", "train"]}'),
        ("PUT", "/collections/made", b'{"fields": {"year": "integer"}}'),
        ("POST", "/collections/made/jobs", b'{"source": "../../etc/passwd"}'),
    )
    names: tuple[str, ...] = (
        *(
            "..",
            "%2e%2e",
            "..%2f..%2fetc",
            "%00",
            "%ff",
            "a" * 300,
            "A",
            " ",
            "-",
            "demo%20",
            "demo%2f",
            "con",
        ),
        *(
            "%F0%9F%8D%B5",
            "%ed%a0%80",
            "\\..\\..",
            "demo;x=1",
            "*",
            "~",
            "$(id)",
            "' or 1=1",
            "%0d%0aX-A:%20b",
            ".",
        ),
    )
    types: tuple[str, ...] = (
        *(
            "text/plain",
            "application/xml",
            "multipart/form-data",
            "application/json; charset=utf-16",
            "",
            "a/b/c",
        ),
        *("application/x-www-form-urlencoded", "application/octet-stream", "application/json, text/plain"),
    )

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - reproducible, not secret

    def request(self) -> dict[str, Any]:
        """One request as arguments of `httpx.Client.request`."""
        kind = self.random.choice(
            [self.mutated, self.mutated, self.fielded, self.typed, self.pathlike, self.deep]
        )
        return kind()

    def mutated(self) -> dict[str, Any]:
        """A valid body cut off, with bytes changed or doubled."""
        method, path, body = self.random.choice(self.valid)
        at = self.random.randrange(len(body))
        changed = self.random.choice(
            [body[:at], body[:at] + bytes([self.random.randrange(256)]) + body[at + 1 :], body[:at] + body]
        )
        return self.json(method, path, changed)

    def fielded(self) -> dict[str, Any]:
        """A valid body with one field replaced or added."""
        method, path, body = self.random.choice(self.valid)
        field, value = self.random.choice(self.fields).encode(), self.random.choice(self.values)
        return self.json(method, path, body[:-1] + b', "' + field + b'": ' + value + b"}")

    def typed(self) -> dict[str, Any]:
        """A valid body under a wrong type, or in a wrong encoding."""
        method, path, body = self.random.choice(self.valid)
        if self.random.random() < 0.3:
            return self.json(
                method, path, body.decode().encode(self.random.choice(["utf-16", "utf-32", "utf-8-sig"]))
            )
        return {
            "method": method,
            "url": path,
            "content": body,
            "headers": {"Content-Type": self.random.choice(self.types)},
        }

    def pathlike(self) -> dict[str, Any]:
        """A name that tries to be a path, or more than a name."""
        name, other = self.random.choice(self.names), self.random.choice(self.names)
        shapes = (
            *(f"/collections/{name}", f"/collections/{name}/jobs", f"/collections//{name}"),
            *(f"/collections/{name}/documents/{other}", f"/collections/demo/documents/{name}"),
            *(f"/jobs/{name}", f"/{name}", f"//{name}", f"/embed/{name}"),
        )
        path = self.random.choice(shapes)
        method = self.random.choice(["GET", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "TRACE", "BREW"])
        return {"method": method, "url": path}

    def deep(self) -> dict[str, Any]:
        """Nesting that would exhaust a recursive parser."""
        method, path, body = self.random.choice(self.valid)
        opening = self.random.choice([b"[", b'{"and":[', b'{"not":', b'{"a":'])
        depth = self.random.choice([20, 200, 1000, 5000, 100_000])
        return self.json(method, path, body[:-1] + b', "filter": ' + opening * depth)

    def json(self, method: str, path: str, content: bytes) -> dict[str, Any]:
        return {
            "method": method,
            "url": path,
            "content": content,
            "headers": {"Content-Type": "application/json"},
        }


def test_hostile_requests_get_the_one_error_shape(server: str) -> None:
    hostile = Hostile(SEED)
    counts: dict[int, int] = {}
    with httpx.Client(timeout=20) as client:
        for number in range(HOSTILE_REQUESTS):
            request = hostile.request()
            request["url"] = server + request["url"]
            response = client.request(**request)
            counts[response.status_code] = counts.get(response.status_code, 0) + 1
            if response.status_code >= 400:
                check_error(response.status_code, response.headers, response.json())
            if number % 50 == 0:
                assert client.get(f"{server}/health").status_code == HTTPStatus.OK
        assert client.post(f"{server}/search", json={"collection": "demo", "query": "tea"}).json()["hits"]
    assert {200, 400, 404, 405, 422} <= counts.keys()


def megabytes(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b" " * 2**20


@pytest.mark.parametrize("path", ["/embed", "/search", "/collections/demo/jobs", "/nowhere", "/health"])
def test_bodies_of_fifty_megabytes_are_refused(server: str, path: str) -> None:
    with httpx.Client(base_url=server, timeout=20) as client:
        for content in (megabytes(50), b" " * (50 * 2**20)):
            response = client.post(path, content=content, headers={"Content-Type": "application/json"})
            assert response.status_code == 413
            check_error(response.status_code, response.headers, response.json())
        assert client.get("/health").status_code == HTTPStatus.OK
