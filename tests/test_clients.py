"""The clients in `clients/` know every route, and the types of the server's description."""

import contextlib
import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import httpx
import pytest
from tercet_client import Client, ConnectionFailedError

from tercet.service.app import create_app
from tercet.service.settings.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
GENERATOR = ROOT / "clients" / "generate_types.py"
# What a method needs that has no default.
ARGUMENTS: dict[str, Any] = {
    "inputs": "tea",
    "query": "tea",
    "documents": [],
    "collection": "c",
    "name": "n",
    "id": "d",
    "ids": ["d"],
    "metadata": {},
    "fields": {"f": "integer"},
    "backup": "b",
    "source": "s",
    "filename": "f.csv",
    "content": b"",
    "queries": ["q"],
    "weights": {"dense": 1},
}
WITHOUT_ROUTE = {"close", "wait_for_job"}


def generator() -> dict[str, Any]:
    return runpy.run_path(str(GENERATOR))


@pytest.mark.slow
def test_types_are_those_of_the_description() -> None:
    files = generator()["generated"]()
    different = [path.name for path, text in files.items() if path.read_text(encoding="utf-8") != text]
    assert not different, f"run python {GENERATOR.relative_to(ROOT)}"


@pytest.mark.slow
def test_every_route_has_a_method() -> None:
    asked: set[tuple[str, str]] = set()

    def note(request: httpx.Request) -> httpx.Response:
        asked.add((request.method, request.url.path))
        raise httpx.ReadError("noted")

    with Client("http://tercet", transport=httpx.MockTransport(note), retries=0) as client:
        for name, method in inspect.getmembers(client, inspect.ismethod):
            if name.startswith("_") or name in WITHOUT_ROUTE:
                continue
            parameters = inspect.signature(method).parameters.values()
            given = {
                each.name: ARGUMENTS[each.name]
                for each in parameters
                if each.default is each.empty and each.kind is not each.VAR_KEYWORD
            }
            with contextlib.suppress(ConnectionFailedError):
                found = method(**given)
                if inspect.isgenerator(found):
                    list(found)
    api = create_app(Settings()).openapi()
    others = generator()["OTHERS"]
    described = {
        (method.upper(), path)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
        if not others & set(operation["tags"])
    }
    called = {operation for operation in described if any(_matches(operation, one) for one in asked)}
    # One document is deleted as several are, and a search is asked for in a body.
    assert described - called == {
        ("DELETE", "/collections/{name}/documents/{document_id}"),
        ("GET", "/search"),
    }
    unknown = [one for one in asked if not any(_matches(operation, one) for operation in described)]
    assert not unknown


def _matches(operation: tuple[str, str], asked: tuple[str, str]) -> bool:
    pattern = re.sub(r"{\w+}", "[^/]+", operation[1])
    return operation[0] == asked[0] and re.fullmatch(pattern, asked[1]) is not None


def test_the_javascript_client_has_the_same_methods() -> None:
    """`upsert` is a function in Python."""
    names = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    expected = {re.sub("_(.)", lambda found: found[1].upper(), name) for name in names - {"close"}} | {
        "upsert"
    }
    folder = ROOT / "clients" / "javascript"
    for file, method in (
        ("tercet.js", r"^  (?:async )?\*?(\w+)\(.*\) \{$"),
        ("tercet.d.ts", r"^  (\w+)\("),
    ):
        text = (folder / file).read_text(encoding="utf-8")
        body = text[text.index("export class Client") :]
        body = body[: body.index("\n}\n")]
        assert set(re.findall(method, body, re.M)) - {"constructor"} == expected, file
