"""What a language model is asked for, and which of its answers are questions.

M3-Embedding (arXiv 2402.03216, section 3.1) has a model write a question about a paragraph of a long
document, and trains on the question with the whole document.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tercet.training.curation.rules import is_contained
from tercet.training.data.pairs import letters, text_digest
from tercet.training.errors import TrainingDataError

PLACE = "{text}"
PROMPT = f"""Below is an excerpt of a longer document. Write one question that somebody could type into a \
search engine, to which this document is the answer.

- Ask for what is at the heart of the excerpt, and specifically enough that few other documents answer it.
- Whoever asks has not seen the document: name things, and write neither "this text" nor "the author".
- Use words of your own rather than a sentence of the excerpt.
- Write in the language of the excerpt, in one line that ends with a question mark, and nothing else.

Excerpt:
{PLACE}"""

Outcome = Literal[
    "written", "refused", "no_answer", "too_short", "too_long", "copied", "no_question", "repeated"
]
"""What became of a document: all but the first leave it out."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LEAST_LETTERS = 6
MOST_CHARACTERS = 400
QUESTION_MARKS = ("?", "？", "؟", "\u037e", "՞", "፧")
# Around a question, or after it.
QUOTES = "\"'“”„«»‘’「」『』`* \t"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with a place for an excerpt."""

    template: str = PROMPT

    @staticmethod
    def read(path: Path) -> Prompt:
        """That of a file. Raises TrainingDataError where it has no place for the excerpt."""
        try:
            template = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise TrainingDataError(f"{path}: cannot be read: {error}") from error
        if PLACE not in template:
            raise TrainingDataError(f"{path}: the prompt lacks {PLACE}, where the excerpt goes")
        return Prompt(template)

    def of(self, excerpt: str) -> str:
        """The prompt with an excerpt."""
        return self.template.replace(PLACE, excerpt)

    @property
    def digest(self) -> str:
        """By which the prompt is known again, hexadecimal."""
        return text_digest(self.template)


def judged(answer: str | None, text: str) -> tuple[Outcome, str]:
    """What an answer about a text is worth, and the question in it, without quotation marks around it."""
    question = (answer or "").strip().strip(QUOTES)
    if not question:
        return "no_answer", question
    if len(letters(question)) < LEAST_LETTERS:
        return "too_short", question
    if len(question) > MOST_CHARACTERS or "\n" in question:
        return "too_long", question
    if not question.endswith(QUESTION_MARKS):
        return "no_question", question
    return ("copied" if is_contained(question, text) else "written"), question
