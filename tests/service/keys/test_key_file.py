"""The file of keys with their own access: what it grants, how a wrong one is refused, and its changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.service.app import create_worker_app
from tercet.service.exceptions import SettingsError
from tercet.service.keys import key_file as key_files
from tercet.service.keys.access import Access, Names
from tercet.service.keys.key_file import KeyFile, read_key_file
from tests.service.polling import pause

DIGEST = hashlib.sha256(b"hashed").hexdigest()


def written(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    """A file of keys, put in the place of the one before."""
    new = path.with_suffix(".new")
    new.write_text("".join(json.dumps(line) + "\n\n" for line in lines), "utf-8")
    return new.replace(path)


def removed(path: Path) -> None:
    """No file of keys any more."""
    path.unlink()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.jsonl"


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_files, "LOOK_SECONDS", 0.01)


def test_each_line_grants_what_it_says(path: Path) -> None:
    lines = [
        {"key": "plain", "access": "read", "collections": ["a", "*"]},
        {
            "key_sha256": DIGEST.upper(),
            "access": "admin",
            "collections": ["a*", "b"],
            "requests_per_second": 5,
            "id": "team-a",
        },
    ]
    found = read_key_file(written(path, lines))
    plain = hashlib.sha256(b"plain")
    assert found == {
        plain.digest(): Access("read", plain.hexdigest()[:12]),
        bytes.fromhex(DIGEST): Access("admin", "team-a", Names(["a*", "b"]), 5),
    }


@pytest.mark.parametrize(
    ("patterns", "seen", "unseen"),
    [
        (["a*"], ["a", "articles"], ["b", "ba"]),
        (["news-202?", "b"], ["news-2024", "b"], ["news-20", "bb"]),
        ([], [], ["a"]),
        (["[ab]c"], ["ac", "bc"], ["cc"]),
    ],
)
def test_patterns_are_those_of_a_shell(patterns: list[str], seen: list[str], unseen: list[str]) -> None:
    access = Access("read", "k", Names(patterns))
    assert all(map(access.sees, seen))
    assert not any(map(access.sees, unseen))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no key"),
        ("\n \n", "holds no key"),
        ('{"key": "sec-ret", "access": "read"}\n\nsec-ret', "line 3: it is no JSON object"),
        ('"sec-ret"', "line 1: it is no JSON object"),
        ('{"key": "sec-ret"}', "line 1: access is missing"),
        ('{"access": "read"}', "line 1: give key or key_sha256: one of them"),
        ('{"key": "sec-ret ", "access": "read"}', "line 1: a key must be printable ASCII"),
        ('{"key": 5, "access": "read"}', "line 1: key is no text"),
        ('{"key_sha256": "sec-ret", "access": "read"}', "line 1: key_sha256 is no SHA-256"),
        (
            '{"key": "sec-ret", "access": "owner"}',
            'line 1: access is "owner"; use "read", "write" or "admin"',
        ),
        ('{"key": "sec-ret", "access": "read", "collection": ["a"]}', "line 1: collection: no such field"),
        (
            '{"key": "sec-ret", "access": "read", "collections": "a"}',
            'line 1: collections is "a"; use a list',
        ),
        ('{"key": "sec-ret", "access": "read", "collections": ["A*"]}', 'line 1: collections.0 is "A'),
        ('{"key": "sec-ret", "access": "read", "requests_per_second": 0}', "use more than 0"),
        ('{"key": "sec-ret", "access": "read", "id": "a b"}', 'line 1: id is "a b"'),
        ('{"key": "sec-ret", "access": "read"}\n{"key": "sec-ret", "access": "read"}', "line 2: the key is"),
        (
            '{"key": "a", "access": "read", "id": "x"}\n{"key": "b", "access": "read", "id": "x"}',
            "line 2: the id x is that of line 1",
        ),
    ],
)
def test_a_wrong_line_is_named_and_no_key_is_told(path: Path, text: str, why: str) -> None:
    path.write_text(text)
    with pytest.raises(SettingsError) as error:
        read_key_file(path)
    assert f"keys file {path}" in str(error.value)
    assert why in str(error.value)
    assert "sec-ret" not in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(SettingsError, match=f"keys file {path}: {why}"):
            KeyFile(path)


async def test_changes_are_taken_up_without_a_restart(make_client: Any, path: Path) -> None:
    written(path, [{"key": "old", "access": "read"}])
    async with make_client(bearer("environment"), keys_file=path, api_keys="environment") as client:

        async def status(key: str) -> int:
            return int((await client.get("/info", headers=bearer(key))).status_code)

        assert [await status("old"), await status("new")] == [200, 401]
        written(path, [{"key": "old", "access": "read"}, {"key_sha256": DIGEST, "access": "read"}])
        while await status("hashed") != 200:
            await pause()
        assert await status("old") == 200
        written(path, [{"key": "new", "access": "read"}])
        while await status("new") != 200:
            await pause()
        assert [await status(key) for key in ("old", "hashed", "environment")] == [401, 401, 200]


@pytest.mark.slow
async def test_a_broken_file_leaves_the_keys_of_before_and_says_so(
    make_client: Any, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(path, [{"key": "old", "access": "admin"}])
    async with make_client(bearer("old"), keys_file=path) as client:
        assert "tercet_keys_file_sound 1.0" in (await client.get("/metrics")).text
        written(path, [{"key": "new", "access": "everything"}])
        while "tercet_keys_file_sound 0.0" not in (await client.get("/metrics")).text:
            await pause()
        assert (await client.get("/info", headers=bearer("new"))).status_code == 401
        while "stay in use" not in caplog.text:
            await pause()
        told = [each.getMessage() for each in caplog.records if "keys file" in each.getMessage()]
        assert told == [
            f'keys file {path}, line 1: access is "everything"; use "read", "write" or "admin"; the keys of '
            "before stay in use"
        ]
        removed(path)
        while "No such file" not in caplog.text:
            await pause()
        written(path, [{"key": "new", "access": "admin"}])
        while (await client.get("/info", headers=bearer("new"))).status_code != 200:
            await pause()
        assert "tercet_keys_file_sound 1.0" in (await client.get("/metrics", headers=bearer("new"))).text


def test_a_file_may_be_asked_for_though_it_looks_unchanged(path: Path) -> None:
    written(path, [{"key": "old", "access": "read"}])
    file = KeyFile(path)
    assert not file._look()
    file.keys = {}
    assert not file._look()
    file.ask()
    assert file._look()
    assert len(file.keys) == 1


async def test_an_encoder_worker_goes_by_it(make_client: Any, path: Path) -> None:
    written(path, [{"key": "node", "access": "read", "collections": []}])
    async with make_client(create=create_worker_app, keys_file=path) as client:
        assert (await client.post("/embed", json={"inputs": "tea"})).status_code == 401
        answer = await client.post("/embed", json={"inputs": "tea"}, headers=bearer("node"))
        assert answer.status_code == 200


async def test_a_key_of_the_file_has_a_limit_of_its_own(make_client: Any, path: Path) -> None:
    line = {"key": "slow", "access": "read", "requests_per_second": 0.01}
    written(path, [line, {"key": "quick", "access": "read"}])
    async with make_client(keys_file=path, key_requests_per_second=1000) as client:

        async def answer(key: str) -> httpx.Response:
            found: httpx.Response = await client.get("/info", headers=bearer(key))
            return found

        assert (await answer("slow")).status_code == 200
        refused = await answer("slow")
        assert refused.status_code == 429
        assert "limit is 0.01 (of the keys file)" in refused.json()["error"]["message"]
        assert (await answer("quick")).status_code == (await answer("quick")).status_code == 200
        written(path, [{**line, "requests_per_second": 1000}, {"key": "new", "access": "read"}])
        while (await answer("new")).status_code != 200:
            await pause()
        assert (await answer("slow")).status_code == (await answer("slow")).status_code == 200


async def test_the_id_of_a_key_is_in_logs_and_metrics_and_the_key_nowhere(
    make_client: Any, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tercet.request")
    audit = tmp_path / "audit.jsonl"
    written(path, [{"key": "sec-ret", "access": "admin", "id": "team-a"}])
    async with make_client(bearer("sec-ret"), keys_file=path, audit="writes", audit_file=audit) as client:
        assert (await client.put("/aliases/live", json={"collection": "demo"})).status_code == 200
        assert (await client.delete("/collections/none")).status_code == 404
        metrics = ""
        while 'tercet_key_requests_total{key="team-a",status="404"} 1.0' not in metrics:
            metrics = (await client.get("/metrics")).text
    entries = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    assert [(each["key"], each["status"]) for each in entries] == [("team-a", 200), ("team-a", 404)]
    lines = [vars(each) for each in caplog.records if each.getMessage() == "request"]
    assert {each.get("key") for each in lines if each["path"] == "/aliases/live"} == {"team-a"}
    assert all("key" not in each for each in lines if each["path"] == "/ready")
    assert "sec-ret" not in metrics + audit.read_text("utf-8") + str(lines)
