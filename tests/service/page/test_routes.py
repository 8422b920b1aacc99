"""What is served of the page, and under which policy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.service.app import create_app, create_worker_app
from tercet.service.exceptions import SettingsError
from tercet.service.page.routes import STATIC
from tercet.service.settings.settings import Settings

# As they are on the wire without compression.
LARGEST_BYTES = 120_000  # of the files that every visit loads
LARGEST_VIEW_BYTES = 30_000  # of those of a view that is loaded when it is opened


def page_files(pattern: str = "*") -> list[Path]:
    """The files of the page, those of its folders among them."""
    return [each for each in STATIC.rglob(pattern) if each.is_file()]


async def test_the_page_needs_no_key_and_holds_no_data(make_client: Any) -> None:
    async with make_client(api_keys="secret") as client:
        for path in ("/", *(f"/page/{each.relative_to(STATIC)}" for each in page_files())):
            assert (await client.get(path)).status_code == 200
        assert (await client.get("/collections")).status_code == 401


async def test_a_strict_policy_goes_with_every_file(client: httpx.AsyncClient) -> None:
    for path in ("/", "/page/app.js", "/page/style.css", "/page/load/view.js"):
        answer = await client.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-cache"


async def test_what_a_browser_has_is_not_sent_again(client: httpx.AsyncClient) -> None:
    first = await client.get("/page/app.js")
    again = await client.get("/page/app.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = await client.head("/")
    assert (head.status_code, head.headers["Content-Type"]) == (200, "text/html; charset=utf-8")


@pytest.mark.parametrize("path", ["/page/none.js", "/page/../app.py", "/page/%2e%2e/routes.py", "/page/"])
async def test_nothing_else_is_served(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_path"


@pytest.mark.parametrize("prefix", ["", "/tercet"], ids=["a proxy cut the prefix", "it left it"])
async def test_behind_a_path_prefix_all_that_the_pages_name_is_below_it(
    make_client: Any, prefix: str
) -> None:
    async with make_client(api_keys="secret", root_path="/tercet") as client:
        for page in ("/", "/docs"):
            answer = await client.get(prefix + page)
            assert answer.status_code == 200
            named = re.findall(r'(?:href|src)="([^"#]+)"', answer.text)
            assert len(named) > 2
            for link in named:
                assert not link.startswith("/"), link
                assert (await client.get(f"{prefix}/{link}")).status_code == 200, link
        for path in STATIC.rglob("*.js"):
            asked = re.search(r"""(?:href|src): ["'`]/|(?:fetch|import)\(["'`]/""", path.read_text("utf-8"))
            assert not asked, path
        assert (await client.get(f"{prefix}/collections")).status_code == 401
        key = {"Authorization": "Bearer secret"}
        described = (await client.get(f"{prefix}/openapi.json", headers=key)).json()
        assert described["servers"] == [{"url": "/tercet"}], "where its routes can be tried"
        slash = await client.get("/tercet")
        assert (slash.status_code, slash.headers["Location"]) == (307, "tercet/")
        assert (await client.get("/tercets/", headers=key)).status_code == 404


def test_a_prefix_that_a_route_has_is_refused() -> None:
    with pytest.raises(SettingsError, match="root_path /search/x begins as a route of the server does"):
        create_app(Settings(root_path="/search/x"))


async def test_an_encoder_worker_has_no_page(make_client: Any) -> None:
    async with make_client(create=create_worker_app) as client:
        assert (await client.get("/")).status_code == 404


def test_the_page_is_small_and_loads_all_its_modules_at_once() -> None:
    files = [each for each in STATIC.iterdir() if each.is_file()]
    assert sum(each.stat().st_size for each in files) <= LARGEST_BYTES
    html = (STATIC / "index.html").read_text("utf-8")
    named = set(re.findall(r'href="page/([\w.]+\.js)"|src="page/([\w.]+\.js)"', html))
    assert {a or b for a, b in named} == {each.name for each in files if each.suffix == ".js"}


def test_views_that_are_loaded_later_are_small() -> None:
    folders = [each for each in STATIC.iterdir() if each.is_dir()]
    assert {each.name for each in folders} == {
        "load",
        "documents",
        "collections",
        "jobs",
        "compare",
        "embed",
        "server",
        "strings",
    }
    for folder in folders:
        sizes = [each.stat().st_size for each in folder.iterdir()]
        of_a_visit = max(sizes) if folder.name == "strings" else sum(sizes)  # the texts of one language
        assert of_a_visit <= LARGEST_VIEW_BYTES


def test_what_modules_import_is_there() -> None:
    for file in page_files("*.js"):
        for path in re.findall(r"""from "(\.[^"]+)"|later\("(\.[^"]+)"\)""", file.read_text("utf-8")):
            assert (file.parent / "".join(path)).is_file(), f"{file.name} imports {path}"


def test_no_markup_is_made_from_text() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?://"
    )
    for file in page_files("*.js"):
        assert not forbidden.search(file.read_text("utf-8")), file.name


def test_every_text_is_there_in_both_languages_and_used() -> None:
    english, korean = ((STATIC / f"strings/{code}.js").read_text("utf-8") for code in ("en", "ko"))
    names = [re.findall(r'^  "([\w.]+)":', part, re.M) for part in (english, korean)]
    assert names[0] == names[1]
    assert len(set(names[0])) == len(names[0])
    sources = "".join(each.read_text("utf-8") for each in page_files("*.js") if each.parent.name != "strings")
    used = set(re.findall(r'"([a-zA-Z]+(?:\.[a-zA-Z0-9]+)*)"', sources))
    families = (
        "nav.",
        "side.",
        "theme.",
        "jobs.state.",
        "jobs.phase.",
        "fusion.",
        "server.failed.",
        "server.state.",
    )  # named by what they are about
    assert [name for name in names[0] if name not in used and not name.startswith(families)] == []
    words = [dict(re.findall(r'^  "([\w.]+)": "(.*)",$', part, re.M)) for part in (english, korean)]
    for name, sentence in words[0].items():
        assert set(re.findall(r"\{\w+\}", sentence)) == set(re.findall(r"\{\w+\}", words[1][name])), name
