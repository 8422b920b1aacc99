"""The audit log: who changed what, by real servers with keys."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from tercet.service.exceptions import SettingsError
from tercet.service.telemetry import audit
from tests.service.polling import pause

OWNER, READER = "the-owner", "the-reader"
KEYS = {"api_keys": OWNER, "read_keys": READER}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def id_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def entries(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


async def requests(client: Any) -> None:
    """A change, a search, a change that is refused, and a key that is not known."""
    document = {"documents": [{"id": "차/1", "text": "hot water"}]}
    url = "/collections/demo/documents"
    assert (await client.put(url, json=document, headers=bearer(OWNER))).is_success
    search = {"collection": "demo", "query": "tea"}
    assert (await client.post("/search", json=search, headers=bearer(READER))).is_success
    assert (await client.delete(f"{url}/차%2F1", headers=bearer(READER))).status_code == 403
    assert (await client.delete(f"{url}/차%2F1", headers=bearer("stolen"))).status_code == 401


async def test_changes_and_refusals_have_entries(make_client: Any, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    async with make_client(**KEYS, audit="writes", audit_file=file) as client:
        await requests(client)
    assert file.stat().st_mode & 0o777 == 0o600
    put, refused, unknown = entries(file)
    assert set(put) == {
        "time",
        "request_id",
        "key",
        "client",
        "method",
        "path",
        "status",
        "collection",
        "documents",
        "position",
    }
    assert (put["key"], put["method"], put["status"]) == (id_of(OWNER), "PUT", 200)
    assert (put["collection"], put["documents"], put["position"]) == ("demo", 1, 1)
    assert (refused["key"], refused["status"]) == (id_of(READER), 403)
    assert refused["path"] == r"/collections/demo/documents/\ucc28/1"
    assert (unknown["key"], unknown["status"]) == (None, 401)
    assert "stolen" not in file.read_text("utf-8")


async def test_all_requests_have_entries_where_asked(make_client: Any, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    async with make_client(**KEYS, audit="all", audit_file=file) as client:
        await requests(client)
    used = [(each["key"], each["path"]) for each in entries(file) if each["path"] != "/ready"]
    assert (id_of(READER), "/search") in used
    assert len(used) == 4


async def test_no_entries_by_default(make_client: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tercet.audit")
    async with make_client(**KEYS) as client:
        await requests(client)
    assert not [each for each in caplog.records if each.name == "tercet.audit"]


async def test_entries_go_to_the_log_without_a_file(
    make_client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tercet.audit")
    async with make_client(**KEYS, audit="writes") as client:
        await requests(client)
    found = [vars(each)["status"] for each in caplog.records if each.name == "tercet.audit"]
    assert found == [200, 403, 401]


async def test_an_entry_is_there_before_the_answer(make_client: Any, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    async with make_client(audit="writes", audit_file=file) as client:
        answer = await client.delete("/collections/demo/documents/tea")
        assert [each["request_id"] for each in entries(file)] == [answer.headers["X-Request-Id"]]
        file.rename(tmp_path / "rotated.jsonl")
        await client.delete("/collections/demo/documents/rail")
        assert [each["documents"] for each in entries(file)] == [1]


async def test_a_write_whose_client_left_has_an_entry(make_client: Any, held: Any, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    async with make_client(encoder=held, audit="writes", audit_file=file) as client:
        held.gate.clear()
        document = {"documents": [{"id": "late", "text": "hot water"}]}
        put = asyncio.create_task(client.put("/collections/demo/documents", json=document))
        while "tercet_queue_tokens 4.0" not in (await client.get("/metrics")).text:
            await pause()  # a client that leaves before its request is known for a write has changed nothing
        put.cancel()
        await asyncio.gather(put, return_exceptions=True)
        held.gate.set()
        while not file.read_text("utf-8"):
            await pause()
    (entry,) = entries(file)
    assert (entry["method"], entry["status"]) == ("PUT", 499)
    assert "documents" not in entry


async def test_a_file_that_fails_is_told_and_counted(
    make_client: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    file = folder / "audit.jsonl"
    async with make_client(audit="writes", audit_file=file) as client:
        file.unlink()
        folder.rmdir()  # so that nothing can be reopened there
        assert (await client.delete("/collections/demo/documents/tea")).is_success
        assert "tercet_audit_failures_total 1.0" in (await client.get("/metrics")).text
    assert any(
        "audit entries could not be written" in each.message
        for each in caplog.records
        if each.levelno == logging.ERROR
    )


def test_the_line_behind_a_torn_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk takes a part of an entry; so may the end of a server have done before."""
    path, write = tmp_path / "audit.jsonl", os.write

    def fill(descriptor: int, data: bytes) -> int:
        if len(data) < 4:
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, data[:-2])

    file = audit._File(path)
    file.write("first\n")
    monkeypatch.setattr(audit.os, "write", fill)
    with pytest.raises(OSError, match="full"):
        file.write("second\n")
    monkeypatch.undo()
    file.write("third\n")
    assert path.read_text() == "first\nsecon\nthird\n"
    path.write_text("first\nsec")
    audit._File(path).write("third\n")
    assert path.read_text() == "first\nsec\nthird\n"


def test_a_file_that_cannot_be_written_to_is_refused(make_app: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"audit_file .* cannot be written to: No such file"):
        make_app(audit="writes", audit_file=tmp_path / "none" / "audit.jsonl")


async def test_where_entries_are_required_nothing_is_answered_without_one(
    make_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first learns it after its change, the next before; then the file is back."""
    monkeypatch.setattr("tercet.service.telemetry.audit.RETRY_SECONDS", 1000)
    folder = tmp_path / "audit"
    folder.mkdir()
    file = folder / "audit.jsonl"
    async with make_client(audit="writes", audit_file=file, audit_required=True) as client:
        file.unlink()
        folder.rmdir()
        url = "/collections/demo/documents"
        first = await client.delete(f"{url}/tea")
        assert (first.status_code, first.json()["error"]["code"]) == (503, "audit_unavailable")
        second = await client.delete(f"{url}/rail")
        assert (second.status_code, second.json()["error"]["code"]) == (503, "audit_unavailable")
        assert "changes nothing" in second.json()["error"]["message"]
        assert (await client.get(f"{url}/rail")).status_code == 200
        assert (await client.post("/search", json={"collection": "demo", "query": "tea"})).is_success
        folder.mkdir()
        monkeypatch.setattr("tercet.service.telemetry.audit.RETRY_SECONDS", 0)
        assert (await client.delete(f"{url}/rail")).is_success
    assert [each["status"] for each in entries(file)] == [200]
