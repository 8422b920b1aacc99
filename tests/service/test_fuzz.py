"""Some 2,600 random and hostile requests against a real server: no 5xx, no hang, one error shape.

Most are made from the OpenAPI description, the others by the generator of `tests/endurance/serving/fuzz.py`,
which sends 100,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tercet.service.app import create_app
from tercet.service.http.error_shapes import shape_of
from tercet.service.settings.settings import Settings
from tests.endurance.serving.exchange import Connection, fault_of
from tests.endurance.serving.hostile import Hostile

pytestmark = pytest.mark.slow

EXAMPLES_OF_EACH_ROUTE_AND_MODE = 12
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
        # The description's own check holds errors of other services' shapes against theirs.
        response = case.call_and_validate(timeout=60, excluded_checks=[positive_data_acceptance])
        assert response.status_code < 500
        if response.status_code >= 400 and shape_of(path) is None:
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


@pytest.fixture
def impatient(make_server: Any) -> Iterator[str]:
    """The address of a server that does not wait for heads and bodies."""
    with make_server(head_timeout_seconds=0.2, body_timeout_seconds=0.2) as url:
        yield url


async def test_hostile_requests_get_the_one_error_shape(impatient: str) -> None:
    host, _, port = impatient.removeprefix("http://").partition(":")
    hostile = Hostile(SEED)
    statuses = set()
    connection = Connection(host, int(port), seconds=60)
    for _ in range(HOSTILE_REQUESTS):
        request = hostile.request()
        has_body = request.method != b"HEAD"
        for _ in range(2):  # what a busy machine sent too late is sent again
            answer = await connection.exchange(request.to_bytes(), whole=request.whole, has_body=has_body)
            if answer is not None or not request.whole:
                break
        if answer is None:
            assert not request.whole, request
        else:
            path = None if request.wire else request.target.partition(b"?")[0].decode("latin-1")
            assert fault_of(answer, path, has_body=has_body) is None, request
            statuses.add(answer.status)
    await connection.close()
    assert {200, 400, 404, 405, 413, 422} <= statuses
    async with httpx.AsyncClient(base_url=impatient) as client:
        found = await client.post("/search", json={"collection": "demo", "query": "tea"})
    assert found.json()["hits"]


def megabytes(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b" " * 2**20


@pytest.mark.parametrize(
    ("path", "status"),
    [("/embed", 413), ("/search", 413), ("/collections/demo/jobs", 413), ("/nowhere", 404), ("/health", 405)],
)
def test_bodies_of_fifty_megabytes_are_refused(server: str, path: str, status: int) -> None:
    with httpx.Client(base_url=server, timeout=60) as client:
        for content in (megabytes(50), b" " * (50 * 2**20)):
            response = client.post(path, content=content, headers={"Content-Type": "application/json"})
            assert response.status_code == status
            check_error(response.status_code, response.headers, response.json())
        assert client.get("/health").status_code == HTTPStatus.OK
