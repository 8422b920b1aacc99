"""`tercet demo`: builds once, answers, and serves."""

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.ports import held_port

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def free_port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.mark.slow
def test_demo_builds_what_is_missing_answers_and_serves(
    tercet: Run, start: Start, data: Path, free_port: int
) -> None:
    done = tercet("demo", "--no-serve")
    assert done.returncode == 0, done.stderr
    assert "Indexed 262 documents" in done.stderr
    assert done.stdout.count("document ") == 3  # one heading for each query
    assert (data / "sources" / "demo.jsonl").is_file()

    settings = data / "collections" / "demo" / "collection.json"
    record = json.loads(settings.read_text())
    settings.write_text(json.dumps({**record, "fingerprint": "0" * 64}))  # as of an earlier release's encoder
    done = tercet("demo", "--no-serve")
    assert done.returncode == 0, done.stderr
    assert json.loads(settings.read_text()) == record

    record.pop("lexical")  # as of an earlier release, which knew no idf
    settings.write_text(json.dumps(record))
    marker = json.loads((data / "demo.json").read_text())
    assert marker.pop("lexical") == "idf"
    (data / "demo.json").write_text(json.dumps(marker))
    done = tercet("demo", "--no-serve")
    assert "Indexed 262 documents" in done.stderr
    assert json.loads(settings.read_text())["lexical"] == "idf"

    with start("demo", "--port", str(free_port)) as process:
        assert process.stderr is not None
        seen = []
        for line in process.stderr:
            seen.append(line)
            if '"ready: ' in line:
                break
        assert "up to date" in seen[0]
        (command,) = [line for line in seen if line.startswith("curl ")]
        body = command.split("-d '")[1].rstrip("'\n")
        answer = httpx.post(f"http://127.0.0.1:{free_port}/search", json=json.loads(body), timeout=120)
        assert len(answer.json()["hits"]) == 3
        process.terminate()
        process.communicate(timeout=120)
    assert process.returncode == 0


def test_a_port_in_use_is_noticed_first(tercet: Run, data: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = tercet("demo", "--port", str(port))
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in done.stderr
    assert not data.exists()
