"""Prompts, and which answers are questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.training.curation.questions import MOST_CHARACTERS, Prompt, judged
from tercet.training.errors import TrainingDataError

TEXT = "Bees dance. Who knows why bees dance? Nobody does."


@pytest.mark.parametrize(
    ("answer", "outcome", "question"),
    [
        ("How do bees tell the way?", "written", "How do bees tell the way?"),
        (' "How do bees tell the way?"\n', "written", "How do bees tell the way?"),
        ("꿀벌은 길을 어떻게 알려 주나요?", "written", "꿀벌은 길을 어떻게 알려 주나요?"),
        ("ミツバチはどう道を教えるのですか？", "written", "ミツバチはどう道を教えるのですか？"),
        ("كيف يرقص النحل؟", "written", "كيف يرقص النحل؟"),
        (None, "no_answer", ""),
        ("  \n", "no_answer", ""),
        ("Why?", "too_short", "Why?"),
        (
            "Here is one:\n\nHow do bees tell the way?",
            "too_long",
            "Here is one:\n\nHow do bees tell the way?",
        ),
        ("w" * MOST_CHARACTERS + "?", "too_long", "w" * MOST_CHARACTERS + "?"),
        ("How bees tell the way.", "no_question", "How bees tell the way."),
        ("who knows why bees dance?", "copied", "who knows why bees dance?"),
    ],
)
def test_answers(answer: str | None, outcome: str, question: str) -> None:
    assert judged(answer, TEXT) == (outcome, question)


def test_the_prompt_has_the_excerpt_as_it_is() -> None:
    assert Prompt("Of {text}: ask {one}.").of("a {text} \\1") == "Of a {text} \\1: ask {one}."
    assert Prompt().of("EXCERPT").endswith("Excerpt:\nEXCERPT")
    assert Prompt().digest != Prompt("{text}").digest


def test_a_prompt_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("Frage zu: {text}\n", encoding="utf-8")
    assert Prompt.read(path).of("x") == "Frage zu: x"
    path.write_text("Frage", encoding="utf-8")
    with pytest.raises(TrainingDataError, match=r"prompt.txt: the prompt lacks \{text\}"):
        Prompt.read(path)
    with pytest.raises(TrainingDataError, match=r"none\.txt: cannot be read"):
        Prompt.read(tmp_path / "none.txt")
