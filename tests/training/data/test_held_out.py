"""The index of held-out texts gives what looking through all of them gives."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tercet.training.data.held_out import HeldOutTexts
from tercet.training.data.pairs import letters

ALPHABETS = ["ab", "abcdefgh", "aé中𝒜 "]


def occurs(text: str, held_out: list[str]) -> bool:
    """The plain definition."""
    joined = "\n".join(letters(document) for document in held_out)
    return bool(joined) and letters(text) in joined


def drawn(chance: random.Random, alphabet: str, most: int) -> str:
    return "".join(chance.choices(alphabet, k=chance.randrange(most)))


def near_copies(chance: random.Random, document: str) -> list[str]:
    """The text, a piece of it with other spacing, that piece with a letter changed, and a piece and more."""
    start = chance.randrange(len(document) + 1)
    piece = document[start : start + chance.randrange(1, 60)]
    spaced = " ".join(piece).upper() + "."
    place = chance.randrange(len(piece) + 1)
    return [document, spaced, piece[:place] + "x" + piece[place + 1 :], piece + "b", document + document]


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("seed", range(8))
def test_the_index_gives_what_the_definition_gives(alphabet: str, seed: int) -> None:
    chance = random.Random(f"{alphabet}{seed}")
    documents = [drawn(chance, alphabet, 120) for _ in range(chance.randrange(12))] + [""] * (seed % 2)
    held_out = HeldOutTexts(documents)
    texts = ["", " .", "a", *(drawn(chance, alphabet, 50) for _ in range(200))]
    texts += [copy for document in documents for _ in range(10) for copy in near_copies(chance, document)]
    expected = [occurs(text, documents) for text in texts]
    assert [held_out.contain_any([text]) for text in texts] == expected
    assert held_out.contain_any(texts) is any(expected)
    assert len(documents) < 2 or set(expected) == {True, False}


def test_a_text_over_the_border_of_two_documents_is_in_neither() -> None:
    held_out = HeldOutTexts(["The wing, at rest, with nothing on it.", "Another wing, in the wind of a day."])
    assert held_out.contain_any(["wing , at rest , with NOTHING on it ."])
    assert not held_out.contain_any(["at rest, with nothing on it. Another wing, in the wind"])


def test_held_out_texts_come_from_beir_folders(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"title": "The", "text": "one"}) + "\n")
    held_out = HeldOutTexts.of([tmp_path])
    assert held_out.contain_any(["other", "the one"])
    assert not held_out.contain_any(["one the"])
    assert not HeldOutTexts.of([]).contain_any(["one", ""])
