"""Questions of many documents: what is written, what is counted, and how a stopped run goes on."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tercet.training.curation import chat
from tercet.training.curation.asking import MOST_REFUSALS, QuestionFile, ask_all, estimated, question_file
from tercet.training.curation.chat import ChatServer
from tercet.training.curation.long_documents import LongDocument
from tercet.training.curation.questions import Prompt
from tercet.training.data.pairs import read_pairs, text_digest
from tercet.training.errors import LanguageModelError, TrainingDataError
from tests.chat_server import ChatLog, Reply, chat_server, completion, failure

PROMPT = Prompt("Ask: {text}")


def documents(count: int) -> list[LongDocument]:
    texts = [f"Document number {number} is about bees." for number in range(count)]
    return [
        LongDocument(f"corpus.jsonl:{number}", text_digest(text), text, f"excerpt {number}", 5)
        for number, text in enumerate(texts, start=1)
    ]


def ask(
    output: Path, log: ChatLog, given: list[LongDocument], concurrency: int = 1, most: int | None = None
) -> dict[str, int]:
    with question_file(output, "small", PROMPT) as file:
        pending = file.pending(given, most)
        server = ChatServer(log.url, "small")
        asyncio.run(ask_all(file, pending, server, concurrency, lambda _: None))
        return {outcome: count for outcome, count in file.counts.by_outcome().items() if count}


def numbered(prompt: str) -> Reply:
    return completion(f"What does {prompt.removeprefix('Ask: excerpt ')} say of the dances of bees?")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_document_gets_a_pair_with_its_whole_text(tmp_path: Path) -> None:
    output = tmp_path / "pairs.jsonl"
    with chat_server(numbered) as log:
        assert ask(output, log, documents(3)) == {"written": 3}
    assert log.prompts == [f"Ask: excerpt {number}" for number in (1, 2, 3)]
    pairs = list(read_pairs(output))
    assert [pair.positives for pair in pairs] == [(document.text,) for document in documents(3)]
    assert pairs[1].query == "What does 2 say of the dances of bees?"
    first, *records = lines(tmp_path / "pairs.jsonl.log.jsonl")
    assert first == {"model": "small", "prompt": PROMPT.digest}
    assert [record["document"] for record in records] == [f"corpus.jsonl:{n}" for n in (1, 2, 3)]
    assert records[0]["prompt_tokens"] == 100


def test_bad_answers_are_counted_and_left_out(tmp_path: Path) -> None:
    given = iter(
        [
            completion("How do bees dance?"),
            completion("Why?"),
            completion("Bees are nice."),
            completion(None),
            completion("“How do bees dance”?"),
            failure(400, "filtered"),
            completion("Document number 6 is about bees?"),
        ]
    )
    output = tmp_path / "pairs.jsonl"
    with chat_server(lambda _: next(given)) as log:
        counts = ask(output, log, documents(7))
    bad = ("refused", "no_answer", "too_short", "no_question", "repeated")
    assert counts == {"written": 1, "copied": 1, **dict.fromkeys(bad, 1)}
    log_lines = lines(tmp_path / "pairs.jsonl.log.jsonl")[1:]
    refused = next(record for record in log_lines if record["outcome"] == "refused")
    assert refused["answer"] == 'answers 400: "filtered"'
    assert next(record for record in log_lines if record["outcome"] == "too_short")["answer"] == "Why?"


def test_a_stopped_run_goes_on_and_asks_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "ATTEMPTS", 1)
    output = tmp_path / "pairs.jsonl"

    def failing(prompt: str) -> Reply:
        return failure(500, "down") if prompt.endswith("3") else numbered(prompt)

    with chat_server(failing) as log, pytest.raises(LanguageModelError, match="answers 500"):
        ask(output, log, documents(4))
    assert len(list(read_pairs(output))) == 2
    with output.open("a") as file:
        file.write('{"query": "cut o')
    with (tmp_path / "pairs.jsonl.log.jsonl").open("a") as file:
        file.write('{"docu')
    with chat_server(numbered) as log:
        assert ask(output, log, documents(5)) == {"written": 5}
    assert log.prompts == [f"Ask: excerpt {number}" for number in (3, 4, 5)]
    assert len(list(read_pairs(output))) == 5


def test_a_pair_whose_line_of_the_log_is_missing_counts(tmp_path: Path) -> None:
    output, log_path = tmp_path / "pairs.jsonl", tmp_path / "pairs.jsonl.log.jsonl"
    with chat_server(numbered) as log:
        ask(output, log, documents(2))
        log_path.write_text("".join(log_path.read_text().splitlines(keepends=True)[:-1]))
        assert ask(output, log, documents(2)) == {"written": 2}
    assert len(log.requests) == 2


def test_so_many_at_a_time_and_no_more(tmp_path: Path) -> None:
    together = threading.Event()

    def slow(prompt: str) -> Reply:
        if log.at_once == 3:
            together.set()
        assert together.wait(30)
        time.sleep(0.01)
        return numbered(prompt)

    with chat_server(slow) as log:
        assert ask(tmp_path / "pairs.jsonl", log, documents(9), 3) == {"written": 9}
    assert log.most == 3


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (failure(400, "unknown parameter"), "unknown parameter"),
        ((200, {}, b"<html>"), "without the text of a chat completion"),
    ],
    ids=["refused", "another server"],
)
def test_no_answers_in_a_row_end_the_run_and_are_not_counted(
    tmp_path: Path, reply: Reply, words: str
) -> None:
    output = tmp_path / "pairs.jsonl"
    with (
        chat_server(lambda _: reply) as log,
        pytest.raises(LanguageModelError, match=rf"no answer to 5 prompts in a row.*{words}"),
    ):
        ask(output, log, documents(9))
    assert len(log.requests) == MOST_REFUSALS
    with chat_server(numbered) as log:
        assert ask(output, log, documents(9)) == {"written": 9}


def test_half_a_surrogate_pair_in_an_answer_is_kept_as_it_came(tmp_path: Path) -> None:
    output = tmp_path / "pairs.jsonl"
    with chat_server(lambda _: completion("Do bees dance \ud83d?")) as log:
        assert ask(output, log, documents(1)) == {"written": 1}
    assert [pair.query for pair in read_pairs(output)] == ["Do bees dance \ud83d?"]


def test_no_more_documents_than_wanted_and_equal_ones_once(tmp_path: Path) -> None:
    output, given = tmp_path / "pairs.jsonl", documents(5)
    with chat_server(numbered) as log:
        ask(output, log, [given[0], given[0], *given[1:]], most=3)
        assert len(log.requests) == 2
        ask(output, log, given, most=4)
    assert len(log.requests) == 4


def test_an_output_of_something_else_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "pairs.jsonl"
    with chat_server(numbered) as log:
        ask(output, log, documents(1))
    others: list[tuple[str, Prompt]] = [("large", PROMPT), ("small", Prompt("{text}"))]
    for model, prompt in others:
        with pytest.raises(TrainingDataError, match="begun with another model or prompt"):
            QuestionFile(output, model, prompt)
    (tmp_path / "pairs.jsonl.log.jsonl").unlink()
    with pytest.raises(TrainingDataError, match="which would say what is done"):
        QuestionFile(output, "small", PROMPT)


def test_the_estimate_by_hand() -> None:
    found = estimated(documents(3), 11)
    assert (found.requests, found.prompt_tokens, found.answer_tokens) == (3, 48, 120)
    assert found.tokens == 168
