"""`tercet doctor` as a user runs it: what it finds, its exit code, and the remedies."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


def found(tercet: Run, *arguments: str, **variables: str) -> tuple[int, list[dict[str, Any]]]:
    done = tercet("doctor", "--json", *arguments, **variables)
    return done.returncode, json.loads(done.stdout)["findings"]


def texts(findings: list[dict[str, Any]], state: str) -> list[str]:
    """Those of a state, but for what is told of the machine that runs the tests, which may be a poor one."""
    return [each["text"] for each in findings if each["state"] == state and each["topic"] != "machine"]


@pytest.fixture(autouse=True)
def enough_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tercet.cli.doctor.data.LEAST_FREE_BYTES", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_all_is_in_order(tercet: Run) -> None:
    done = tercet("doctor")
    assert done.returncode == 0, done.stdout
    assert "PROBLEM" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ok      software    tercet ")
    assert any("collection 'small': documents 4, segments 1" in line for line in lines)
    assert any("a short text encoded in" in line for line in lines)
    assert any("127.0.0.1, port 8080: open, for this machine alone" in line for line in lines)


def test_a_first_look_at_an_empty_folder(tercet: Run, tmp_path: Path) -> None:
    code, findings = found(tercet)
    assert code == 0
    assert f"{tmp_path}/data does not exist; it is made when it is needed" in texts(findings, "note")
    assert not (tmp_path / "data").exists()


def test_a_checkpoint_that_cannot_be_used_is_a_problem(tercet: Run, tmp_path: Path) -> None:
    code, findings = found(tercet, "--checkpoint", str(tmp_path))
    assert code == 1
    (problem,) = (each for each in findings if each["state"] == "problem")
    assert problem["text"].startswith(f"checkpoint '{tmp_path}' cannot be used: ")
    assert "multi-m3 and minilm-m3 come with Tercet" in problem["remedy"]


def test_exports_of_checkpoints_are_listed(tercet: Run, tmp_path: Path) -> None:
    (tmp_path / "cache" / "bge-m3-0123" / "onnx").mkdir(parents=True)
    (tmp_path / "cache" / "bge-m3-0123" / "onnx" / "model.onnx").write_bytes(bytes(200_000))
    _, findings = found(tercet, TERCET_EXPORT_CACHE=str(tmp_path / "cache"))
    assert f"exports in {tmp_path}/cache, 0.2 MB: bge-m3-0123" in texts(findings, "ok")


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_a_collection_of_another_encoder_is_named(tercet: Run, data: Path) -> None:
    settings = data / "collections" / "small" / "collection.json"
    settings.write_text(
        settings.read_text("utf-8").replace(json.loads(settings.read_text("utf-8"))["fingerprint"], "0" * 64),
        "utf-8",
    )
    code, findings = found(tercet)
    assert code == 0
    (warning,) = texts(findings, "warning")
    assert f"fingerprint {'0' * 64}: it is another one by now" in warning


@pytest.mark.usefixtures("built")
def test_a_damaged_collection_is_a_problem(tercet: Run, data: Path) -> None:
    (data / "collections" / "small" / "CURRENT").write_text("nothing", "utf-8")
    code, findings = found(tercet)
    assert code == 1
    (problem,) = (each for each in findings if each["state"] == "problem")
    assert problem["text"].startswith("collection 'small' cannot be opened: ")
    assert "tercet collection verify small" in problem["remedy"]


def test_a_data_root_that_is_a_file_is_a_problem(tercet: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("", "utf-8")
    code, findings = found(tercet)
    assert code == 1
    assert texts(findings, "problem") == [f"{tmp_path}/data cannot be written to"]


def test_workers_that_are_gone_are_problems(tercet: Run, dead_url: str) -> None:
    code, findings = found(tercet, "--encoder-url", dead_url)
    assert code == 1
    (problem,) = texts(findings, "problem")
    assert problem.startswith(f"the worker {dead_url} cannot be used: ")


@pytest.mark.slow
def test_an_open_server_and_limits_that_do_not_fit_are_warned_of(tercet: Run, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("secret\n", "utf-8")
    keys.chmod(0o644)
    _, findings = found(tercet, TERCET_HOST="0.0.0.0", TERCET_FLUSH_DOCUMENTS="70000")
    open_, limits = texts(findings, "warning")
    assert open_ == "0.0.0.0, port 8080: whoever reaches it may read and change everything"
    assert limits.startswith("flush_documents is 70000, but unpublished_documents is 65536")
    _, findings = found(tercet, TERCET_READ_KEYS_FILE=str(keys))
    assert texts(findings, "warning") == [f"every user of this machine may read read_keys_file {keys}"]
    assert "secret" not in json.dumps(findings)
    keys.write_text('{"key": "secret", "access": "read"}\n{"key": "secret-2", "access": "all"}\n', "utf-8")
    _, findings = found(tercet, TERCET_KEYS_FILE=str(keys))
    assert texts(findings, "problem") == [
        f'keys file {keys}, line 2: access is "all"; use "read", "write" or "admin"'
    ]
    keys.write_text('{"key": "secret", "access": "read"}\n', "utf-8")
    _, findings = found(tercet, TERCET_KEYS_FILE=str(keys))
    assert f"keys_file {keys}: 1 keys (1 read, 0 write, 0 admin)" in texts(findings, "ok")
    assert "secret" not in json.dumps(findings)
