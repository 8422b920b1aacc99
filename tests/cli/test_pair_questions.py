"""`tercet pairs questions`: what it says before it asks, what it prints, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chat_server import ChatLog, Reply, chat_server, completion
from tests.cli.conftest import Run

TEXTS = [f"Chapter {number}. " + "Bees dance to tell where flowers are. " * 8 for number in range(3)]


def reply(prompt: str) -> Reply:
    if "Chapter 2" in prompt:
        return completion("No.")
    number = prompt.partition("Chapter ")[2][:1]
    return completion(f"What is said of dancing in part {number}?")


@pytest.fixture
def server() -> Iterator[ChatLog]:
    with chat_server(reply) as log:
        yield log


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in ["short", *TEXTS]))
    return path


def flags(server: ChatLog, *more: str) -> tuple[str, ...]:
    asked = ("--output", "pairs.jsonl", "--url", server.url, "--model", "small", "--least-tokens", "40")
    return ("pairs", "questions", "corpus.jsonl", *asked, "--checkpoint", "minilm-m3", *more)


def test_it_says_what_it_takes_and_writes_pairs(tercet: Run, corpus: Path, server: ChatLog) -> None:
    price = ("--price-per-million-tokens", "2000")
    done = tercet(*flags(server, "--yes", *price), OPENAI_API_KEY="s3cret")
    assert done.returncode == 0, done.stderr
    said = dict(line.split(maxsplit=1) for line in done.stderr.splitlines()[:1])
    assert said == {"requests": "3"}
    prompts = next(line for line in done.stderr.splitlines() if line.startswith("tokens of prompts"))
    tokens = int(prompts.split()[-1].replace(",", ""))
    assert tokens > 3 * 80
    assert f"about {(tokens + 120) * 2000 / 1e6:.2f}" in done.stderr
    assert done.stdout.splitlines() == [
        "pairs.jsonl: 2 pairs of 3 documents",
        "  1  answers that are too short",
        "The server counted 300 tokens of prompts and 30 of answers.",
    ]
    pairs = [json.loads(line) for line in (corpus.parent / "pairs.jsonl").read_text().splitlines()]
    assert {pair["pos"][0] for pair in pairs} == {text.strip() for text in TEXTS[:2]}
    assert server.headers[0]["authorization"] == "Bearer s3cret"
    again = tercet(*flags(server, "--json"))  # nothing is left to be asked, and nobody is
    assert json.loads(again.stdout)["documents"]["written"] == 2
    assert len(server.requests) == 3


def test_off_a_terminal_it_wants_yes(tercet: Run, corpus: Path, server: ChatLog) -> None:
    refused = tercet(*flags(server))
    assert refused.returncode == 2
    assert "to send 3 requests" in " ".join(refused.stderr.split())
    assert not server.requests
    assert not (corpus.parent / "pairs.jsonl").exists()


@pytest.mark.parametrize(("answer", "code", "requests"), [("y\n", 0, 3), ("n\n", 1, 0)])
def test_on_a_terminal_it_asks(
    tercet: Run,
    corpus: Path,
    server: ChatLog,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    requests: int,
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("typer.confirm", lambda *_, **__: answer == "y\n")
    assert tercet(*flags(server)).returncode == code
    assert len(server.requests) == requests


def test_the_prompt_is_shown_and_nothing_sent(tercet: Run, corpus: Path, tmp_path: Path) -> None:
    shown = tercet("pairs", "questions", "corpus.jsonl", "--least-tokens", "40", "--show-prompt")
    assert shown.returncode == 0, shown.stderr
    assert "Excerpt:\nChapter 0." in shown.stdout
    (tmp_path / "own.txt").write_text("Frage zu {text}")
    own = tercet("pairs", "questions", "corpus.jsonl", "--show-prompt", "--prompt", "own.txt")
    assert own.stdout == "Frage zu {text}\n"  # no document has so many tokens


def test_another_variable_may_hold_the_key(tercet: Run, corpus: Path, server: ChatLog) -> None:
    done = tercet(*flags(server, "--yes", "--key-variable", "OWN", "--documents", "1"), OWN="other")
    assert done.returncode == 0, done.stderr
    assert [headers["authorization"] for headers in server.headers] == ["Bearer other"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("--url", "localhost"), "--url"),
        (("--parameters", "[]"), "give one JSON object"),
        (("--parameters", '{"messages": []}'), "give one JSON object"),
        (("--output", "none/pairs.jsonl"), "there is no such folder"),
        (("--concurrency", "0"), "--concurrency"),
    ],
)
def test_what_it_refuses(
    tercet: Run, corpus: Path, server: ChatLog, changed: tuple[str, ...], message: str
) -> None:
    refused = tercet(*flags(server, "--yes", *changed))
    assert refused.returncode == 2
    assert message in refused.stderr
    assert not server.requests


def test_no_long_document_is_said(tercet: Run, corpus: Path, server: ChatLog) -> None:
    done = tercet(*flags(server, "--yes", "--least-tokens", "5000"))
    assert done.returncode == 1
    assert "no document has 5000 tokens" in done.stderr


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_answered(
    start: Callable[..., subprocess.Popen[str]], tercet: Run, corpus: Path
) -> None:
    goes_on = threading.Event()

    def slow(prompt: str) -> Reply:
        if "Chapter 1" in prompt:
            goes_on.wait(60)
        return reply(prompt)

    with chat_server(slow) as server:
        process = start(*flags(server, "--yes", "--concurrency", "1"))
        while len(server.requests) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        goes_on.set()
        assert process.returncode == 130
        assert len((corpus.parent / "pairs.jsonl").read_text().splitlines()) == 1
        done = tercet(*flags(server, "--yes", "--json"))
        assert json.loads(done.stdout)["documents"]["written"] == 2
        assert len(server.requests) == 4


@pytest.mark.parametrize("missing", ["--url", "--model", "--output"])
def test_what_it_needs(tercet: Run, corpus: Path, missing: str) -> None:
    given = {"--url": "http://127.0.0.1:9/v1", "--model": "small", "--output": "pairs.jsonl"}
    del given[missing]
    refused = tercet("pairs", "questions", "corpus.jsonl", *(part for pair in given.items() for part in pair))
    assert refused.returncode == 2
    assert missing in refused.stderr
