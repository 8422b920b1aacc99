"""MinHash of letters, and pairs that nearly repeat an earlier one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tercet.training.curation import near_duplicates
from tercet.training.curation.near_duplicates import SHINGLE_LETTERS, PairHashes, min_hashes
from tercet.training.data.pairs import letters

BEES = "Bees dance to tell the others where flowers are, how far away they lie, and how good they are."
TEA = "Green tea is brewed with water that is hot but does not boil, for three minutes and no longer."


def shingles(text: str) -> set[str]:
    words = letters(text)
    return {words[at : at + SHINGLE_LETTERS] for at in range(len(words) - SHINGLE_LETTERS + 1)}


def duplicates(tmp_path: Path, pairs: list[tuple[str, str]], threshold: float = 0.8) -> list[tuple[int, int]]:
    hashed = PairHashes(tmp_path / "hashes")
    for number, (query, passage) in enumerate(pairs):
        hashed.add(number, query, passage)
    return hashed.duplicates(threshold)


def test_equal_hashes_estimate_the_jaccard_similarity() -> None:
    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefghijklmnop"), 7)) for _ in range(400)]
    errors = []
    for shared in (50, 100, 150, 190):
        first, second = " ".join(words[:200]), " ".join(words[200 - shared : 400 - shared])
        one, other = shingles(first), shingles(second)
        found = (min_hashes(first) == min_hashes(second)).mean()
        errors.append(found - len(one & other) / len(one | other))
    assert np.abs(errors).max() < 0.2  # three standard errors of 63 hashes
    assert abs(np.mean(errors)) < 0.1


def test_spaces_capitals_and_marks_make_no_difference() -> None:
    np.testing.assert_array_equal(min_hashes("Tea, hot!\n"), min_hashes("teahot"))
    for text in ("", "a", "김치", "!?"):
        assert len(min_hashes(text)) == near_duplicates.HASHES


def test_long_texts_have_the_hashes_of_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = min_hashes(BEES * 5 + TEA)
    monkeypatch.setattr(near_duplicates, "SHINGLES_AT_ONCE", 7)
    np.testing.assert_array_equal(min_hashes(BEES * 5 + TEA), whole)


def test_a_pair_that_repeats_another_is_found(tmp_path: Path) -> None:
    pairs = [
        ("why do bees dance?", BEES),
        ("how is green tea made?", TEA),
        ("Why do bees dance", BEES.upper()),
        ("why do bees dance?", BEES.replace("good", "nice")),
        ("how is green tea made?", TEA),
    ]
    assert duplicates(tmp_path, pairs, 0.7) == [(2, 0), (3, 0), (4, 1)]


def test_one_text_alone_makes_no_duplicate(tmp_path: Path) -> None:
    pairs = [
        ("why do bees dance?", BEES),
        ("what tells a bee the way to flowers?", BEES),
        ("why do bees dance?", TEA),
    ]
    assert duplicates(tmp_path, pairs) == []


def test_numbers_of_pairs_may_have_gaps(tmp_path: Path) -> None:
    hashed = PairHashes(tmp_path / "hashes")
    for number in (3, 5, 9):
        hashed.add(number, "why?", BEES)
    assert hashed.duplicates(1.0) == [(5, 3), (9, 3)]


def test_no_pairs_have_no_duplicates(tmp_path: Path) -> None:
    assert PairHashes(tmp_path / "hashes").duplicates(0.5) == []


def test_many_equal_pairs_are_compared_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "PAIRS_AT_ONCE", 3)
    pairs = [("why do bees dance?", BEES), ("how is green tea made?", TEA)] * 6
    assert duplicates(tmp_path, pairs) == [(row, row % 2) for row in range(2, 12)]


def test_what_agrees_in_bands_alone_is_not_compared_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0
    alike = near_duplicates.alike

    def counting(*arguments: object) -> object:
        nonlocal compared
        compared += 1
        return alike(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(near_duplicates, "alike", counting)
    monkeypatch.setattr(near_duplicates, "band_keys", lambda stored, _: np.zeros(len(stored), np.uint64))
    random = np.random.default_rng(2)
    texts = ["".join(random.choice(list("abcdefghijklmnop"), 60)) for _ in range(200)]
    assert duplicates(tmp_path, [(text, text) for text in texts]) == []
    assert compared == near_duplicates.MOST_COMPARED * near_duplicates.BANDS
