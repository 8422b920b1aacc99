"""Has a language model write a question for each of many documents, and goes on where it was stopped.

Pairs are appended to the output, and what became of each document to a log beside it. Both are of whole
lines, whatever ends the command, so that nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from tercet.models.files import alone
from tercet.training.curation.chat import Answer, ChatServer
from tercet.training.curation.long_documents import LongDocument
from tercet.training.curation.questions import OUTCOMES, Outcome, Prompt, judged
from tercet.training.data.pairs import (
    ANY_LINE,
    json_line,
    letters,
    numbered_lines,
    parse_object,
    read_pairs,
    text_digest,
)
from tercet.training.errors import LanguageModelError, TrainingDataError
from tercet.training.files import whole_lines

ANSWER_TOKENS = 40  # of a question, about
# So many refusals in a row are not about single texts.
MOST_REFUSALS = 5
LOG_SUFFIX = ".log.jsonl"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is still to be asked; tokens as a tokenizer of ours counts them, so about."""

    requests: int = 0
    prompt_tokens: int = 0

    @property
    def answer_tokens(self) -> int:
        """Of all answers, if they are questions of common length."""
        return ANSWER_TOKENS * self.requests

    @property
    def tokens(self) -> int:
        """Of prompts and answers."""
        return self.prompt_tokens + self.answer_tokens


def estimated(documents: Iterable[LongDocument], prompt_tokens: int) -> Estimate:
    """What documents take. prompt_tokens: of the prompt without an excerpt."""
    excerpts = [document.excerpt_tokens for document in documents]
    return Estimate(len(excerpts), sum(excerpts) + prompt_tokens * len(excerpts))


@dataclass(slots=True)
class AskedCounts:
    """What became of documents, and the tokens that the server counted."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    prompt_tokens: int = 0
    answer_tokens: int = 0

    def add(self, outcome: Outcome, prompt_tokens: int, answer_tokens: int) -> None:
        """One more document."""
        self.outcomes[outcome] += 1
        self.prompt_tokens += prompt_tokens
        self.answer_tokens += answer_tokens

    def by_outcome(self) -> dict[Outcome, int]:
        """How many documents there are of each outcome."""
        return {outcome: self.outcomes[outcome] for outcome in OUTCOMES}


class QuestionFile:
    """The pairs of an output file, and its log. model, prompt: what all of it is written with."""

    def __init__(self, output: Path, model: str, prompt: Prompt) -> None:
        """Raises TrainingDataError where the file is of something else."""
        self.output = output
        self.log = output.with_name(output.name + LOG_SUFFIX)
        self.prompt = prompt
        self.counts = AskedCounts()
        self._identity = {"model": model, "prompt": prompt.digest}
        self._done: set[str] = set()
        self._questions: set[str] = set()
        self._files: tuple[IO[str], IO[str]]
        self._read()

    def pending(self, documents: Iterable[LongDocument], most: int | None) -> Iterator[LongDocument]:
        """Of the first `most` documents those that have no outcome yet; a text that repeats has one."""
        seen: set[str] = set()
        for document in islice(documents, most):
            if document.digest not in self._done and document.digest not in seen:
                seen.add(document.digest)
                yield document

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Within it, `enter` may be used. The first line of the log says what all of it is written with."""
        begins = not self.log.is_file()
        with self.output.open("a", encoding="utf-8") as pairs, self.log.open("a", encoding="utf-8") as log:
            self._files = pairs, log
            if begins:
                write(log, self._identity)
            yield

    def enter(self, answers: Iterable[tuple[LongDocument, Answer]]) -> None:
        """Writes what became of some documents."""
        pairs, log = self._files
        for document, answer in answers:
            outcome, question = judged(answer.text, document.text)
            if answer.refusal:
                outcome = "refused"
            if outcome == "written" and letters(question) in self._questions:
                outcome = "repeated"
            if outcome == "written":
                self._questions.add(letters(question))
                write(pairs, {"query": question, "pos": [document.text]})
            self._done.add(document.digest)
            tokens = {"prompt_tokens": answer.prompt_tokens, "answer_tokens": answer.answer_tokens}
            self.counts.add(outcome, **tokens)
            record = {"document": document.where, "digest": document.digest, "outcome": outcome, **tokens}
            write(log, record if outcome == "written" else {**record, "answer": answer.refusal or question})

    def _read(self) -> None:
        whole_lines(self.log)
        if not self.log.is_file() or not self.log.stat().st_size:
            if self.output.is_file() and self.output.stat().st_size:
                raise TrainingDataError(
                    f"{self.output} is there, and {self.log} is not, which would say what is done; name "
                    "another output"
                )
            self.log.unlink(missing_ok=True)
            return
        for line, where in numbered_lines(self.log):
            record = parse_object(line, where, "what became of a document")
            if where.endswith(":1"):
                if record != self._identity:
                    raise TrainingDataError(
                        f"{self.output} was begun with another model or prompt; name another output, or give "
                        "those"
                    )
                continue
            outcome = record["outcome"]
            self._done.add(str(record["digest"]))
            self.counts.add(outcome, record["prompt_tokens"], record["answer_tokens"])  # type: ignore[arg-type]  # as `enter` wrote them
        whole_lines(self.output)
        for pair in read_pairs(self.output, rules=ANY_LINE) if self.output.is_file() else ():
            self._questions.add(letters(pair.query))
            digest = text_digest(pair.positives[0])
            if digest not in self._done:  # a kill came between the pair and its line of the log
                self._done.add(digest)
                self.counts.add("written", 0, 0)


@contextmanager
def question_file(output: Path, model: str, prompt: Prompt) -> Iterator[QuestionFile]:
    """The file of an output, which no other command writes to meanwhile. Raises as `QuestionFile`."""
    lock = output.with_name(f".{output.name}.lock")
    with alone(lock, f"another command writes to {output}"):
        yield QuestionFile(output, model, prompt)


async def ask_all(
    file: QuestionFile,
    documents: Iterator[LongDocument],
    server: ChatServer,
    concurrency: int,
    report: Callable[[int], None],
) -> None:
    """Asks for a question about each document, some of them at a time, and writes what comes of it.

    report: is told how many documents are done. Raises LanguageModelError where the server does not serve;
    what it has answered is written.
    """
    done = 0
    refused: list[tuple[LongDocument, Answer]] = []  # in a row

    async def work() -> None:
        nonlocal done
        for document in documents:
            answer = await server.ask(file.prompt.of(document.excerpt))
            done += 1
            report(done)
            if answer.text is None:
                refused.append((document, answer))
                if len(refused) == MOST_REFUSALS:
                    raise LanguageModelError(
                        f"the server has no answer to {MOST_REFUSALS} prompts in a row; to the last one it "
                        f"{answer.refusal or 'answers without the text of a chat completion'}"
                    )
                continue
            # Only what lies between answers is about its own text, and not asked again.
            file.enter([*refused, (document, answer)])
            refused.clear()

    with file.opened():
        try:
            async with server, asyncio.TaskGroup() as workers:
                for _ in range(concurrency):
                    workers.create_task(work())
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        file.enter(refused)


def write(file: IO[str], value: dict[str, Any]) -> None:
    """Appends a line of JSON, which the system has at once."""
    file.write(json_line(value) + "\n")
    file.flush()
