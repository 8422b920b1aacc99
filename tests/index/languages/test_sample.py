"""The sample of a collection's languages is the same however it is divided, and has only what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.documents.store import DocumentStore
from tercet.index.errors import DamagedIndexError
from tercet.index.languages import sample as sampling
from tercet.index.languages.sample import LanguageSample, SegmentLanguages, sample_of
from tests.index.conftest import Build, random_representations

ENGLISH = "The bridge over the river was closed for repairs until the end of the month."
GERMAN = "Die Brücke über den Fluss wurde bis zum Ende des Monats für Reparaturen gesperrt."


def documents(count: int) -> list[Document]:
    """Every third is in German, and every seventh says nothing."""
    texts = ["12" if row % 7 == 6 else GERMAN if row % 3 == 0 else ENGLISH for row in range(count)]
    return [Document(f"d{row}", text) for row, text in enumerate(texts)]


def of(**counts: int) -> LanguageSample:
    languages = [language for language, count in counts.items() for _ in range(count)]
    return LanguageSample(np.arange(len(languages), dtype=np.uint64), languages)


@pytest.mark.parametrize(
    ("sample", "chance"),
    [
        (of(en=100), 1.0),
        (of(en=20, de=20), 19 / 39),  # 2 · 20 · 19 of 40 · 39 pairs
        (of(en=30, de=10), (30 * 29 + 10 * 9) / (40 * 39)),
        (of(en=10, de=9), 1.0),  # too few
        (
            LanguageSample(np.arange(50, dtype=np.uint64), ["en", "de"] * 12 + [""] * 26),
            1.0,
        ),  # most say nothing
        (of(), 1.0),
    ],
)
def test_the_chance_of_one_language_by_hand(sample: LanguageSample, chance: float) -> None:
    assert sample.same_language() == pytest.approx(chance)


def test_one_segment_equals_many(build: Build) -> None:
    held = documents(600), random_representations(600, seed=1)
    one, many = (
        build(held, name, size).snapshot().languages() for name, size in (("one", 1000), ("many", 37))
    )
    assert len(one.hashes) == sampling.SAMPLED
    np.testing.assert_array_equal(one.hashes, many.hashes)
    assert one.languages == many.languages
    assert set(one.languages) == {"en", "de", ""}


def test_samples_of_parts_are_united(build: Build) -> None:
    texts, encoded = documents(600), random_representations(600, seed=1)
    whole = build((texts, encoded), "whole").snapshot().languages()
    parts = [
        build((texts[some], encoded.take(np.arange(600)[some])), name).snapshot().languages()
        for name, some in (("first", slice(0, 450)), ("last", slice(450, 600)))
    ]
    united = LanguageSample.united(parts)
    np.testing.assert_array_equal(united.hashes, whole.hashes)
    assert united.languages == whole.languages


@pytest.mark.parametrize("left", [1000, 300, 40, 0])
def test_deleted_documents_are_not_in_it(build: Build, left: int) -> None:
    [segment] = build((documents(2000), random_representations(2000, seed=1))).snapshot()._opened()
    kept = np.zeros(2000, np.bool_)
    kept[:left] = True
    sample = sample_of([(segment.languages, kept)])
    expected = np.sort(segment.documents.ids.hashes[:left])[: sampling.SAMPLED]
    np.testing.assert_array_equal(sample.hashes, expected)


def test_a_damaged_document_has_no_language(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    [segment] = build((documents(30), random_representations(30, seed=1))).snapshot()._opened()

    def damaged(_store: DocumentStore, _row: int) -> Document:
        raise DamagedIndexError("holds no stored document")

    monkeypatch.setattr(DocumentStore, "get", damaged)
    assert set(sample_of([(SegmentLanguages(segment.documents), None)]).languages) == {""}


def test_a_text_is_detected_once(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = build((documents(30), random_representations(30, seed=1))).snapshot()
    first = snapshot.languages()
    monkeypatch.setattr(sampling, "language_of", None)
    [segment] = snapshot._opened()
    again = sample_of([(replace(segment, entry=None).languages, None)])
    assert again.languages == first.languages
