"""CORS: which pages elsewhere may call a server, on every route and whatever the answer is."""

from importlib.metadata import version
from typing import Any

import httpx
import pytest

from tercet.service.exceptions import OverloadedError, SettingsError
from tercet.service.settings.reading import load_settings

PAGE = "https://app.example.com"
ELSEWHERE = "https://evil.example"
ALLOWED = "access-control-allow-origin"
ASKS = {
    "Access-Control-Request-Method": "PATCH",
    "Access-Control-Request-Headers": "authorization,content-type",
}


def of(page: str, **more: str) -> dict[str, str]:
    return {"Origin": page, **more}


async def test_by_default_nothing_is_said_of_origins(client: httpx.AsyncClient) -> None:
    answer = await client.options("/search", headers={**of(PAGE), **ASKS})
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert ALLOWED not in (await client.get("/info", headers=of(PAGE))).headers


async def test_a_browser_that_asks_before_is_answered_without_a_key(make_client: Any) -> None:
    async with make_client(cors_origins=f"{PAGE}, http://localhost:3000", api_keys="key") as client:
        for path in ("/search", "/collections/a/documents/b", "/tei/embed", "/v2/embed", "/nowhere"):
            answer = await client.options(path, headers={**of(PAGE), **ASKS})
            assert answer.status_code == 200
            assert answer.headers[ALLOWED] == PAGE
            assert answer.headers.get_list(ALLOWED) == [PAGE]
            assert answer.headers["access-control-allow-headers"] == "authorization,content-type"
            assert "PATCH" in answer.headers["access-control-allow-methods"]
            assert "Origin" in answer.headers["vary"]
            assert answer.headers["X-Request-Id"]
        refused = await client.options("/search", headers={**of(ELSEWHERE), **ASKS})
        assert refused.status_code == 401
        assert ALLOWED not in refused.headers
        not_asked = await client.options("/search", headers=of(PAGE))
        assert not_asked.status_code == 401


async def test_every_answer_may_be_read_errors_too(make_client: Any) -> None:
    search = {"collection": "demo", "query": "tea"}
    async with make_client(cors_origins=PAGE, api_keys="key", max_body_bytes=200) as client:
        key = {"Authorization": "Bearer key"}
        answers = [
            await client.post("/search", json=search, headers={**of(PAGE), **key}),
            await client.post("/search", json={}, headers={**of(PAGE), **key}),
            await client.post("/search", json=search, headers=of(PAGE)),
            await client.get("/nowhere", headers={**of(PAGE), **key}),
            await client.delete("/search", headers={**of(PAGE), **key}),
            await client.post("/search", content=b"x" * 300, headers={**of(PAGE), **key}),
            await client.get("/health", headers=of(PAGE)),
            await client.post("/tei/embed", json={}, headers={**of(PAGE), **key}),
        ]
        assert [each.status_code for each in answers] == [200, 422, 401, 404, 405, 413, 200, 422]
        for answer in answers:
            assert answer.headers.get_list(ALLOWED) == [PAGE]
            assert "Origin" in answer.headers["vary"]
            assert "Retry-After" in answer.headers["access-control-expose-headers"]
        gzipped = await client.get("/info", headers={**of(PAGE), **key, "Accept-Encoding": "gzip"})
        assert {"Origin", "Accept-Encoding"} <= set(", ".join(gzipped.headers.get_list("vary")).split(", "))
        elsewhere = await client.get("/health", headers=of(ELSEWHERE))
        assert elsewhere.status_code == 200
        assert ALLOWED not in elsewhere.headers
        assert "Origin" in elsewhere.headers["vary"]


async def test_pages_that_are_allowed_may_write_and_others_still_not(make_client: Any) -> None:
    document = {"documents": [{"id": "a", "text": "tea"}]}
    async with make_client(cors_origins=PAGE) as client:
        put = "/collections/demo/documents"
        assert (await client.put(put, json=document, headers=of(PAGE))).status_code == 200
        assert (await client.put(put, json=document, headers=of(ELSEWHERE))).status_code == 403
        # A browser does not ask before it sends this, so it must not count as what it asks for.
        simple = await client.post("/collections/demo/merge", headers=of(PAGE))
        assert simple.status_code == 400


async def test_any_origin_is_a_star(make_client: Any) -> None:
    async with make_client(cors_origins="*") as client:
        asked = await client.options("/search", headers={**of(ELSEWHERE), **ASKS})
        assert asked.headers[ALLOWED] == "*"
        answer = await client.get("/info", headers=of(ELSEWHERE))
        assert answer.headers[ALLOWED] == "*"
        assert "vary" not in answer.headers or "Origin" not in answer.headers["vary"]


def test_what_is_refused_at_the_wire_may_be_read_and_who_asks_before_is_let_in(
    make_app: Any, serve: Any, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(cors_origins=PAGE)

    def require(path: str, *_: Any) -> None:
        raise OverloadedError(f"no {path} now", 2, "loop")

    with serve(app) as url:
        monkeypatch.setattr(app.state.runtime.gate, "require", require)
        client = connect(url)
        client.send("GET /collections HTTP/1.1", f"Origin: {PAGE}")
        answer = client.answer()
        assert (answer.status, answer.headers["retry-after"]) == (429, "2")
        assert answer.headers[ALLOWED] == PAGE
        assert answer.headers["tercet-version"] == version("tercet")
        client.send("OPTIONS /collections HTTP/1.1", f"Origin: {PAGE}", "Access-Control-Request-Method: GET")
        assert client.answer().status == 200
        client.socket.sendall(b"NONSENSE\r\n\r\n")
        answer = client.answer()
        assert answer.status == 400
        assert answer.headers["tercet-version"] == version("tercet")


@pytest.mark.parametrize(
    "origin", ["app.example.com", "https://a.example/", "https://", "null", "https://a b"]
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(SettingsError, match=r"is no origin; write it as https://app\.example\.com"):
        load_settings({"cors_origins": origin})
