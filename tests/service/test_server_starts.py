"""What a server says, warns of and refuses at its start."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import PATIENCE_SECONDS, StartServer
from tests.service.test_serve import DOCUMENTS, PAUSE_SECONDS, finished_job, logged, wait_ready


@pytest.mark.slow
def test_a_free_port_is_told(start_server: StartServer, tmp_path: Path) -> None:
    process, _ = start_server("serve", "--port", "0", "--threads", "1")
    url = None
    while url is None and process.poll() is None:
        found = [
            re.match(r"listening on (http://127\.0\.0\.1:\d+)$", line["message"]) for line in logged(tmp_path)
        ]
        url = next((match[1] for match in found if match), None)
        time.sleep(PAUSE_SECONDS)
    assert url is not None
    assert httpx.get(f"{url}/health").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", "encoder"])
def test_too_few_open_files_are_told_at_the_start(tmp_path: Path, repository: Path, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tercet.cli.main", command, "--port", "0"],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        timeout=PATIENCE_SECONDS,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "this process may have 64 files open, and a server takes 128 at least: raise" in done.stderr


@pytest.mark.slow
def test_a_setting_that_does_nothing_alone_is_told_at_the_start(
    start_server: StartServer, tmp_path: Path
) -> None:
    process, client = start_server("serve", "--publish-keep", "3")
    assert process.wait(PATIENCE_SECONDS) == 2
    log = (tmp_path / f"log-{client.base_url.port}").read_text()
    assert "setting publish_keep (TERCET_PUBLISH_KEEP) is 3, and does nothing without publish_url" in log


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_loaded_ends_the_server(
    start_server: StartServer, tmp_path: Path
) -> None:
    process, _ = start_server("serve", "--checkpoint", "not-there", "--log-format", "text")
    assert process.wait(PATIENCE_SECONDS) == 1
    (log,) = [file.read_text() for file in tmp_path.glob("log-*")]
    assert "Traceback" not in log
    assert log.splitlines()[-1].startswith("Error: checkpoint 'not-there'")


@pytest.mark.slow
def test_a_second_server_on_the_same_data_root_is_refused(
    start_server: StartServer, tmp_path: Path, repository: Path
) -> None:
    sources = tmp_path / "data" / "sources"
    sources.mkdir(parents=True)
    (sources / "articles.jsonl").write_text("\n".join(map(json.dumps, DOCUMENTS)))
    first, client = start_server("serve", "--threads", "1")
    wait_ready(first, client)
    second, _ = start_server("serve", "--threads", "1", "--log-format", "text")
    assert second.wait(PATIENCE_SECONDS) == 1
    said = [file.read_text().splitlines()[-1] for file in tmp_path.glob("log-*")]
    assert f"Error: another server uses the data root {tmp_path / 'data'}: stop it, or" in "\n".join(said)
    listening = [file.name for file in tmp_path.glob("log-*") if "listening on" in file.read_text()]
    assert len(listening) == 1, "the one that was refused never was there"
    command = [
        "collection",
        "build",
        str(sources / "articles.jsonl"),
        "--collection",
        "beside",
        "--data",
        "data",
    ]
    subprocess.run(
        [sys.executable, "-m", "tercet.cli.main", *command],
        cwd=tmp_path,
        env={**os.environ, "TERCET_CHECKPOINT": "minilm-m3"},
        check=True,
    )
    assert finished_job(client, "articles", "articles.jsonl")["state"] == "succeeded"
    first.kill()  # nothing of it may hold the lock on: its children neither
    first.wait()
    third, client = start_server("serve", "--threads", "1")
    wait_ready(third, client)


@pytest.mark.slow
def test_binding_elsewhere_without_a_key_warns(start_server: StartServer, tmp_path: Path) -> None:
    process, client = start_server("serve", "--host", "0.0.0.0", "--checkpoint", "not-there")
    process.wait(PATIENCE_SECONDS)
    messages = [line["message"] for line in logged_until_end(tmp_path)]
    assert any("without a key" in message for message in messages)
    assert any("for any name" in message and "allowed_hosts" in message for message in messages)
    assert client.base_url


@pytest.mark.slow
def test_a_server_of_known_names_does_not_warn_of_others(start_server: StartServer, tmp_path: Path) -> None:
    process, _ = start_server(
        "serve",
        "--host",
        "0.0.0.0",
        "--allowed-hosts",
        "tercet",
        "--checkpoint",
        "not-there",
    )
    process.wait(PATIENCE_SECONDS)
    messages = [line["message"] for line in logged_until_end(tmp_path)]
    assert any("without a key" in message for message in messages)
    assert not any("for any name" in message for message in messages)


def logged_until_end(folder: Path) -> list[dict[str, Any]]:
    """The log's lines but the last, which is the command's own."""
    return [json.loads(line) for file in folder.glob("log-*") for line in file.read_text().splitlines()[:-1]]


@pytest.mark.slow
def test_a_keys_file_is_read_again_at_sighup_and_a_broken_one_starts_nothing(
    start_server: StartServer, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.jsonl"
    keys.write_text('{"key": "old", "access": "read"}\n')
    process, client = start_server("serve", "--keys-file", str(keys))
    wait_ready(process, client)
    assert client.get("/info", headers={"Authorization": "Bearer old"}).status_code == 200
    keys.write_text('{"key": "new", "access": "read"}\n')
    process.send_signal(signal.SIGHUP)
    while client.get("/info", headers={"Authorization": "Bearer new"}).status_code != 200:
        assert process.poll() is None
        time.sleep(PAUSE_SECONDS)
    assert client.get("/info", headers={"Authorization": "Bearer old"}).status_code == 401
    keys.write_text('{"key": "new", "access": "read"}\n{"key": "other"}\n')
    process, client = start_server("serve", "--keys-file", str(keys))
    assert process.wait(PATIENCE_SECONDS) == 2
    log = (tmp_path / f"log-{client.base_url.port}").read_text()
    assert "line 2: access is missing; give it" in log
    assert "other" not in log


@pytest.mark.slow
def test_servers_of_a_checkpoint_without_graphs_export_it_once(
    start_server: StartServer, repository: Path, tmp_path: Path
) -> None:
    """Two that start at once, with nothing but the checkpoint's own files, which stay as they are."""
    pytest.importorskip("onnxscript", reason="the export needs onnxscript: install tercet[torch]")
    checkpoint = repository / "tests" / "models" / "golden" / "checkpoint"
    before = sorted((path, path.stat().st_mtime_ns) for path in checkpoint.rglob("*"))
    cache = tmp_path / "exports"
    variables = {"TERCET_CHECKPOINT": str(checkpoint), "TERCET_EXPORT_CACHE": str(cache)}
    started = [start_server("serve", "--data", f"data-{number}", **variables) for number in range(2)]
    for process, client in started:
        wait_ready(process, client)
    one, other = [
        client.post("/embed", json={"inputs": ["hot tea"]}).json()["embeddings"] for _, client in started
    ]
    assert one == other
    assert {"dense", "sparse", "colbert"} <= set(one[0])
    infos = [client.get("/info").json()["encoder"] for _, client in started]
    assert {info["engine"] for info in infos} == {"onnxruntime"}
    logs = "".join(path.read_text() for path in tmp_path.glob("log-*"))
    assert logs.count("is exported to") == 1
    assert logs.count("this one waits") <= 1  # none where the export had ended before the other looked
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1
    assert sorted((path, path.stat().st_mtime_ns) for path in checkpoint.rglob("*")) == before
