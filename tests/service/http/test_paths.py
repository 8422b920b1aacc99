"""Slashes within a segment of a path."""

import json
from typing import Any

import httpx
import pytest

from tercet.service.http.paths import decoded, shown, with_slashes


@pytest.mark.parametrize(
    ("raw", "path", "segments"),
    [
        (b"/a/b", "/a/b", 2),
        (b"/a%2Fb", "/a%2Fb", 1),
        (b"/a%2fb/c", "/a%2Fb/c", 2),
        ("/차%2f물".encode(), "/차%2F물", 1),
        (b"/%EC%B0%A8%2F", "/차%2F", 1),
        (b"/a%252Fb", "/a%2Fb", 1),  # a percent sign of its own
        (b"/%E2%2F", "/\ufffd%2F", 1),
    ],
)
def test_a_written_slash_parts_no_segments(raw: bytes, path: str, segments: int) -> None:
    assert shown(decoded(raw)) == path
    assert decoded(raw).count("/") == segments


def test_parameters_have_the_slash_that_was_meant() -> None:
    name = decoded(b"a%2Fb%252F")
    assert with_slashes({"name": name, "number": 3}) == {"name": "a/b%2F", "number": 3}


def test_a_server_takes_a_written_slash_for_text(server: str, connect: Any) -> None:
    body = json.dumps({"documents": [{"id": "a/b", "text": "tea"}]})
    headers = {"Content-Type": "application/json"}
    with httpx.Client(base_url=server, headers=headers) as client:
        assert client.put("/collections/demo/documents", content=body).status_code == 200
        for path in ("/collections/demo/documents/a%2Fb", "/collections/demo/documents/a/b"):
            assert client.get(path).json()["id"] == "a/b"
        for method, path in (
            ("GET", "/collections/demo%2fdocuments"),
            ("PUT", "/collections/demo%2Fdocuments"),
        ):
            answer = client.request(method, path, content=b"" if method == "GET" else b"{}")
            assert (answer.status_code, answer.json()["error"]["param"]) == (422, "name")
        missing = client.get("/nowhere%2Fat%2Fall")
        assert (missing.status_code, "/nowhere%2Fat%2Fall" in missing.text) == (404, True)
        assert client.delete("/collections/demo/documents/a%2Fb").status_code == 200
