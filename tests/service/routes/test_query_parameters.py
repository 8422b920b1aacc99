"""Query parameters that a route does not have are refused, on every route."""

from typing import Any

import httpx
import pytest

from tercet.service.app import create_app, create_worker_app

PATHS = {
    "name": "demo",
    "document_id": "tea",
    "job_id": "any",
    "alias": "live",
    "backup_id": "any",
    "model": "any",
}

TAKEN = "this path takes after, filter, limit, min_position, order, order_by, partition"


@pytest.mark.slow
@pytest.mark.parametrize("create", [create_app, create_worker_app])
async def test_an_unknown_parameter_is_refused_on_every_route(make_client: Any, create: Any) -> None:
    async with make_client(create=create) as client:
        description = (await client.get("/openapi.json")).json()
        asked = 0
        for path, operations in description["paths"].items():
            for method, operation in operations.items():
                answer = await client.request(method, path.format(**PATHS), params={"dryrun": "true"})
                assert answer.status_code == 422, (method, path, answer.text)
                assert "there is no query parameter 'dryrun'" in answer.text
                assert "422" in operation["responses"], path
                asked += 1
        assert asked >= 6


async def test_what_was_to_be_done_is_not_done(client: httpx.AsyncClient) -> None:
    assert (await client.delete("/collections/demo?dry_run=true")).status_code == 422
    assert (await client.get("/collections/demo")).json()["documents"] == 5


@pytest.mark.parametrize(
    ("query", "param", "message"),
    [
        (
            "limt=3",
            "limt",
            f"there is no query parameter 'limt'; {TAKEN}",
        ),
        (
            "filters=%7B%7D",
            "filters",
            f"there is no query parameter 'filters'; {TAKEN}",
        ),
        ("limit=3&limit=4", "limit", "limit is given twice; give it once"),
        ("=3", "", f"there is no query parameter ''; {TAKEN}"),
    ],
)
async def test_the_answer_names_it_and_those_that_are_known(
    client: httpx.AsyncClient, query: str, param: str, message: str
) -> None:
    answer = await client.get(f"/collections/demo/documents?{query}")
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["message"]) == (422, param, message)


async def test_binary_bodies_are_no_way_around_it(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/x-safetensors"}
    answer = await client.put("/collections/demo/documents?a=b", content=b"", headers=headers)
    assert answer.json()["error"]["message"] == (
        "there is no query parameter 'a'; this path takes none: leave it out"
    )


async def test_known_parameters_and_what_azure_clients_send_are_taken(client: httpx.AsyncClient) -> None:
    assert len((await client.get("/collections/demo/documents?limit=3&after=")).json()["error"]) == 4
    assert len((await client.get("/collections/demo/documents?limit=3")).json()["documents"]) == 3
    assert (await client.get("/v1/models?api-version=2024-10-21")).status_code == 200
    embedded = await client.post("/v1/embeddings?api-version=2024-10-21", json={"input": "tea"})
    assert embedded.status_code == 200
