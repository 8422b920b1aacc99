"""`tercet pairs questions`: questions for long documents, which a language model writes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, counted, error_console, print_json, print_pairs
from tercet.service.settings.server_urls import url_of

if TYPE_CHECKING:
    from tercet.training.curation.asking import AskedCounts, Estimate
    from tercet.training.curation.chat import ChatServer
    from tercet.training.curation.long_documents import LongDocument

WORDS = {
    "refused": "refused by the server",
    "no_answer": "without an answer",
    "too_short": "answers that are too short",
    "too_long": "answers of several lines, or too long",
    "copied": "answers that stand in the document",
    "no_question": "answers that end in no question mark",
    "repeated": "questions that were asked before",
}


@dataclass(frozen=True, kw_only=True)
class ModelFlags:
    """The language model, and where it is served."""

    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Server that answers as OpenAI's does, up to /chat/completions: http://127.0.0.1:8000/v1.",
            show_default=False,
        ),
    ] = None
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model, as the server calls it.", show_default=False)
    ] = None
    key_variable: Annotated[
        str, typer.Option(metavar="VARIABLE", help="Variable that holds the server's key, if it wants one.")
    ] = "OPENAI_API_KEY"
    parameters: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="""More keys of each request, such as '{"temperature": 0.7, "max_tokens": 200}'.""",
            show_default=False,
        ),
    ] = None

    def server(self) -> ChatServer:
        """The server. Raises typer.BadParameter."""
        from tercet.training.curation.chat import ChatServer

        if self.url is None or self.model is None:
            flag = "--url" if self.url is None else "--model"
            raise typer.BadParameter("give it; a language model writes the questions", param_hint=flag)
        try:
            url = url_of(self.url)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--url") from error
        parameters: Any = {}
        try:
            parameters = json.loads(self.parameters or "{}")
        except ValueError:
            parameters = None
        if not isinstance(parameters, dict) or "messages" in parameters:
            raise typer.BadParameter(
                "give one JSON object, without messages, which are the prompt", param_hint="--parameters"
            )
        return ChatServer(url, self.model, os.environ.get(self.key_variable) or None, parameters)


@with_flag_groups
def questions(
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS", help='Documents: JSON lines {"text", "title"?}, or plain text, one a line.'
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            help="File of training pairs; one that is not done is gone on with.", show_default=False
        ),
    ] = None,
    *,
    language_model: ModelFlags,
    least_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a document at least.")] = 1024,
    excerpt_tokens: Annotated[
        int, typer.Option(min=16, help="Tokens of a document at most that the model is shown.")
    ] = 1024,
    documents: Annotated[
        int | None, typer.Option(min=1, help="Documents at most. [default all]", show_default=False)
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A prompt of your own, with {text} in it.", show_default=False),
    ] = None,
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Print the prompt of the first document, and ask nothing.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Requests at a time.")] = 4,
    price_per_million_tokens: Annotated[
        float | None,
        typer.Option(min=0, help="To estimate what it costs, in any currency.", show_default=False),
    ] = None,
    checkpoint: options.Checkpoint = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send the requests without asking first.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Have a language model write a question for each long document, as training pairs.

    The model is shown an excerpt, and the pair has the whole document. Nothing is sent before it is said how
    many requests and tokens it takes, and you agree. Stopped, the same command goes on. Example:

    tercet pairs questions corpus.jsonl --output pairs.jsonl --url http://127.0.0.1:8000/v1 --model qwen
    """
    from tercet.cli.progress import count_progress
    from tercet.models.checkpoint import resolve_checkpoint
    from tercet.models.loader import load_tokenizer
    from tercet.training.curation.asking import ask_all, estimated, question_file
    from tercet.training.curation.long_documents import DocumentChoice
    from tercet.training.curation.questions import Prompt
    from tercet.training.errors import TrainingDataError

    wanted = Prompt() if prompt is None else Prompt.read(prompt)
    tokenizer = load_tokenizer(resolve_checkpoint(options.settings_from(checkpoint=checkpoint).checkpoint))
    choice = DocumentChoice(corpus, tokenizer, least_tokens, excerpt_tokens)
    if show_prompt:
        first = next(choice.documents(), None)
        sys.stdout.write(wanted.of("{text}" if first is None else first.excerpt) + "\n")
        return
    server = language_model.server()
    if output is None:
        raise typer.BadParameter("name the file to write", param_hint="--output")
    if output.suffix == ".gz":
        raise typer.BadParameter(f"{output} cannot be appended to; leave out .gz", param_hint="--output")
    if not output.absolute().parent.is_dir():
        raise typer.BadParameter(f"{output}: there is no such folder; make it first", param_hint="--output")
    with question_file(output, language_model.model or "", wanted) as file:

        def pending() -> Iterator[LongDocument]:
            return file.pending(choice.documents(), documents)

        estimate = estimated(pending(), len(tokenizer.spans(wanted.of(""))))
        if not estimate.requests and not file.counts.outcomes:
            raise TrainingDataError(
                f"{corpus}: no document has {least_tokens} tokens; give --least-tokens fewer"
            )
        if estimate.requests:
            _require_agreement(estimate, price_per_million_tokens, yes=yes)
            with count_progress("Asking", "documents") as report:
                asyncio.run(
                    ask_all(
                        file, pending(), server, concurrency, lambda done: report(done, estimate.requests)
                    )
                )
        if as_json:
            _print_json(output, file.counts)
        else:
            _print(output, file.counts)


def _require_agreement(estimate: Estimate, price: float | None, *, yes: bool) -> None:
    """Says what it takes, and asks on a terminal. Raises typer.BadParameter where nobody can be asked, and
    typer.Exit where the answer is no.
    """
    takes = {
        "requests": estimate.requests,
        "tokens of prompts": f"about {estimate.prompt_tokens:,}",
        "tokens of answers": f"about {estimate.answer_tokens:,}",
    }
    if price is not None:
        takes["cost"] = f"about {estimate.tokens * price / 1e6:,.2f}"
    print_pairs(takes, error_console())
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(
            f"there is no terminal to ask on; give it to send {counted(estimate.requests, 'request')}",
            param_hint="--yes",
        )
    if not typer.confirm("Send them?", err=True):
        raise typer.Exit(1)


def _print_json(output: Path, counts: AskedCounts) -> None:
    print_json(
        {
            "output": str(output),
            "documents": counts.by_outcome(),
            "prompt_tokens": counts.prompt_tokens,
            "answer_tokens": counts.answer_tokens,
        }
    )


def _print(output: Path, counts: AskedCounts) -> None:
    out, outcomes = console(), counts.by_outcome()
    pairs, asked = counted(outcomes.pop("written"), "pair"), counted(counts.outcomes.total(), "document")
    out.print(f"{output}: {pairs} of {asked}", soft_wrap=True)
    for outcome, count in outcomes.items():
        if count:
            out.print(f"  {count:,}  {WORDS[outcome]}", soft_wrap=True)
    if counts.prompt_tokens:
        out.print(
            f"The server counted {counts.prompt_tokens:,} tokens of prompts and {counts.answer_tokens:,} of "
            "answers.",
            soft_wrap=True,
        )
