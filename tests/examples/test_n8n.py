"""The workflow for n8n: what its HTTP Request nodes send, sent to a server in their order."""

import json
from pathlib import Path
from typing import Any

import httpx

from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import serving

WORKFLOW = Path(__file__).resolve().parents[2] / "examples" / "n8n.json"
SERVER = "http://127.0.0.1:8080"
HTTP_REQUEST = "n8n-nodes-base.httpRequest"


async def sent(client: httpx.AsyncClient, node: dict[str, Any], execution: str) -> httpx.Response:
    """What the node of an execution is answered."""
    parameters = node["parameters"]
    assert parameters["url"].startswith(SERVER)
    headers = {
        each["name"]: each["value"].removeprefix("=").replace("{{ $execution.id }}", execution)
        for each in parameters.get("headerParameters", {"parameters": []})["parameters"]
    }
    return await client.request(
        parameters["method"],
        parameters["url"].removeprefix(SERVER),
        headers=headers,
        json=json.loads(parameters["jsonBody"]),
    )


async def test_it_puts_searches_and_deletes_and_may_try_again(tmp_path: Path, tiny: Any) -> None:
    workflow = json.loads(WORKFLOW.read_text(encoding="utf-8"))
    by_name = {node["name"]: node for node in workflow["nodes"]}
    order, place = [], "Start"
    while place in workflow["connections"]:
        place = workflow["connections"][place]["main"][0][0]["node"]
        order.append(by_name[place])
    assert len(order) == len(by_name) - 1
    assert {node["type"] for node in order} == {HTTP_REQUEST}
    async with serving(create_app(Settings(data=tmp_path), tiny)) as client:
        for execution, made in (("1", 201), ("2", 409)):  # the collection is there the second time
            answers = []
            for node in order:
                answer, again = [await sent(client, node, execution) for _ in range(2)]
                if "sendHeaders" in node["parameters"]:  # those of a write under its key
                    assert again.json() == answer.json(), node["name"]
                answers.append(answer)
            assert [answer.status_code for answer in answers] == [made, 200, 200, 200]
            _, put, found, deleted = (answer.json() for answer in answers)
            assert put["upserted"] == 2
            assert [hit["id"] for hit in found["hits"]] == ["tea"]
            assert deleted["deleted"] == 1
