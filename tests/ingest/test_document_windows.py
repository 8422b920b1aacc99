"""Building with windows: what is encoded, in bounded groups; a book of 91 pages, found to its last page."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document, Weights, Window
from tercet.index.collection import Collection
from tercet.index.verify import verify
from tercet.index.windows.settings import WindowSettings
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.document_windows import EncodedText, encoded_texts, text_of_window, windows_of
from tercet.ingest.errors import SourceError
from tercet.models import stream
from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import encode
from tercet.models.errors import UnsupportedWindowError
from tercet.models.loader import load_encoder
from tercet.models.stream import Known, Watch
from tercet.models.texts.windows import WindowCutter
from tercet.models.tokenizer import Tokenizer

WINDOW = WindowSettings(tokens=12, overlap=2)
PAGES = 91  # so that a window begins with the last


def cutter(tiny: Any) -> WindowCutter:
    return WindowCutter.of(tiny.tokenizer, WINDOW.tokens, WINDOW.overlap)


def parts(document: Document, tiny: Any) -> list[tuple[str, int, int, bool]]:
    return [(part.text, part.start, part.end, part.last) for part in encoded_texts(document, cutter(tiny))]


def test_each_window_follows_the_title(tiny: Any) -> None:
    document = Document("d", "a b c d e f g h i j k l", "hot tea")  # ten tokens, of which two are the title's
    assert parts(document, tiny) == [
        ("hot tea\na b c d e f g h", 0, 15, False),
        ("hot tea\ng h i j k l", 12, 23, True),
    ]
    assert text_of_window(document, Window(1, 12, 23), cutter(tiny)) == "hot tea\ng h i j k l"
    assert parts(Document("d", "a b c", "hot tea"), tiny) == [("hot tea\na b c", 0, 5, True)]
    assert parts(Document("d", "", None), tiny) == [("", 0, 0, True)]


def test_a_long_title_is_cut_as_text(tiny: Any) -> None:
    """Nothing of it is lost; a window that lies in it has no part of the text."""
    document = Document("d", "x y", "a b c d e f g h i j k l")
    assert parts(document, tiny) == [("a b c d e f g h i j", 0, 0, False), ("i j k l\nx y", 0, 3, True)]
    assert text_of_window(document, Window(1, 0, 3), cutter(tiny)) is None
    short = Document("d", "x y", "a b c d e f")
    assert parts(short, tiny) == [("a b c d e f\nx y", 0, 3, True)]
    assert text_of_window(short, Window(0, 0, 3), cutter(tiny)) == short.encoded_text


def test_without_windows_the_whole_document_is_encoded() -> None:
    document = Document("d", "a b c", "t")
    assert list(encoded_texts(document, None)) == [EncodedText(document, "t\na b c", 0, 5, last=True)]


def test_texts_become_documents_again(tiny: Any) -> None:
    """Also where a group begins or ends within a document."""
    documents = [Document("x", "a " * 30), Document("y", "b"), Document("z", "c " * 25)]
    texts = [text for document in documents for text in encoded_texts(document, cutter(tiny))]
    found, windows = windows_of(texts[1:-1])
    assert found == documents
    assert windows.offsets.tolist() == [0, 3, 4, 6]
    assert windows.continues
    assert windows.spans[3].tolist() == [0, 1]
    assert not windows_of(texts)[1].continues


def book(pages: int, words: Sequence[str], seed: int = 0) -> tuple[str, int]:
    """A text of so many pages of 300 words, the last of other words, and where that begins."""
    choice = random.Random(seed)
    body = "\n\n".join(" ".join(choice.choices(words, k=300)) for _ in range(pages - 1)) + "\n\n"
    return body + " ".join(["green", "leaf", "black"] * 100), len(body)


@pytest.fixture
def shelf(tmp_path: Path) -> tuple[Path, int]:
    """A book of 91 pages between two short documents, and where its last page begins."""
    text, last_page = book(PAGES, ["tea", "water", "hot", "train", "rail", "the", "a"])
    path = tmp_path / "shelf.jsonl"
    documents = [
        {"id": "first", "text": "the train"},
        {"id": "book", "title": "steam", "text": text},
        {"id": "last", "text": "the station"},
    ]
    path.write_text("\n".join(map(json.dumps, documents)))
    return path, last_page


@pytest.mark.slow
def test_a_book_is_found_to_its_last_page(
    tmp_path: Path, tiny: Any, shelf: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """27,000 tokens through an encoder of 32, in groups of 400; the book is one document of one segment."""
    monkeypatch.setattr(stream, "WINDOW_TOKENS", 400)
    source, last_page = shelf
    largest = 0

    class Watched(LocalDocuments):
        def encode_stream(self, texts: Iterable[str], known: Known, watch: Watch) -> Any:
            nonlocal largest
            for encoded in super().encode_stream(texts, known, watch):
                largest = max(largest, int(encoded.tokens.sum()))
                yield encoded

    report = build_collection(
        Watched(tiny), tmp_path, "shelf", source, window=WindowSettings(32, 8), token_codec="float16"
    )
    assert largest < 500
    assert (report.documents, report.truncated) == (3, 0)
    assert report.tokens > 27_000 * 30 / 22
    assert verify(tmp_path, "shelf") == []
    snapshot = Collection.open(tmp_path, "shelf").snapshot()
    assert snapshot.documents == 3
    hit = snapshot.search(encode(tiny, ["green leaf black"], "query")).hits[0]
    assert hit.document.id == "book"
    assert hit.window is not None
    assert hit.window.start >= last_page - 100  # the window may begin on the page before
    passage = hit.document.text[hit.window.start : hit.window.end]
    assert passage.startswith(("green", "leaf", "black"))
    assert set(passage.split()) == {"green", "leaf", "black"}


@pytest.mark.slow
def test_groups_do_not_show(tmp_path: Path, tiny: Any, shelf: tuple[Path, int]) -> None:
    """One group, or thousands: the same collection."""
    hits = []
    for name, tokens in (("one", 10_000_000), ("many", 100)):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(stream, "WINDOW_TOKENS", tokens)
            build_collection(LocalDocuments(tiny), tmp_path, name, shelf[0], window=WindowSettings(32, 8))
        snapshot = Collection.open(tmp_path, name).snapshot()
        hits.append(snapshot.search(encode(tiny, ["hot steam at the station"], "query")).hits)
    assert hits[0] == hits[1]


def test_every_score_is_that_of_the_windows(tmp_path: Path, tiny: Any) -> None:
    """Against each window encoded by hand as a text of its own."""
    text = "tea hot water brew train rail station green leaf black steam the a tea green"
    (tmp_path / "x.jsonl").write_text(json.dumps({"id": "d", "title": "hot", "text": text}))
    build_collection(
        LocalDocuments(tiny), tmp_path, "x", tmp_path / "x.jsonl", window=WINDOW, token_codec="float16"
    )
    snapshot = Collection.open(tmp_path, "x").snapshot()
    query = encode(tiny, ["green water"], "query")
    windows = encode(tiny, [part.text for part in encoded_texts(Document("d", text, "hot"), cutter(tiny))])
    assert len(windows) == 2
    assert query.dense is not None
    assert query.colbert is not None
    assert windows.dense is not None
    assert windows.colbert is not None
    hit = snapshot.search(query, weights=Weights(1, 0, 1)).hits[0]
    dense = windows.dense @ query.dense[0]
    late = [(query.colbert.row(0) @ windows.colbert.row(row).T).max(axis=1).mean() for row in range(2)]
    assert hit.scores.dense == pytest.approx(dense.max(), abs=2e-3)
    assert hit.scores.colbert == pytest.approx(max(late), abs=2e-3)
    assert hit.window is not None
    assert hit.window.index == int(np.argmax(dense + late))


def test_windows_that_the_encoder_does_not_take_are_refused(tmp_path: Path, tiny: Any) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a", "text": "tea"}')
    with pytest.raises(UnsupportedWindowError, match="this encoder takes at most 32"):
        build_collection(
            LocalDocuments(tiny), tmp_path / "c", "x", tmp_path / "x.jsonl", window=WindowSettings(64, 8)
        )
    assert not (tmp_path / "c" / "x").exists()


@pytest.mark.slow
def test_a_character_longer_than_a_window_names_its_document(repository: Path) -> None:
    tokenizer = Tokenizer.load(
        repository / "checkpoints" / "multi-m3",
        EncodingSettings(max_length=64, document_instruction="a: b: "),
    )
    cutter = WindowCutter.of(tokenizer, 8, 0)
    with pytest.raises(
        SourceError, match=r"document 'd': the character 'ﷺ' has 4 tokens, .* use longer windows"
    ):
        list(encoded_texts(Document("d", "tea ﷺ"), cutter))


@pytest.mark.slow
def test_a_window_without_room_for_the_title_is_told_again(repository: Path) -> None:
    """For an explanation, from the document and the window's place alone."""
    tokenizer = Tokenizer.load(repository / "checkpoints" / "multi-m3", EncodingSettings(max_length=64))
    cutter = WindowCutter.of(tokenizer, 8, 0)
    document = Document("d", "tea ﷺ water", "hot green tea")
    windows = list(encoded_texts(document, cutter))
    assert [window.text for window in windows] == ["hot green tea\ntea", "ﷺ", "hot green tea\nwater"]
    for place, window in enumerate(windows):
        assert text_of_window(document, Window(place, window.start, window.end), cutter) == window.text


@pytest.mark.slow
def test_a_book_of_real_text_is_found_to_its_last_page(
    tmp_path: Path, shared_data: Path, embedded_checkpoint: Path
) -> None:
    """91 pages of 2,000 characters of news, with the embedded encoder; parts of the last page find it."""
    with gzip.open(shared_data / "time" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        articles = [json.loads(line)["text"] for line in file]
    text = " ".join(articles)[: PAGES * 2000]
    documents = [{"id": "book", "title": "News of 1963", "text": text}]
    documents += [{"id": f"article {place}", "text": article} for place, article in enumerate(articles[-20:])]
    source = tmp_path / "book.jsonl"
    source.write_text("\n".join(map(json.dumps, documents)))
    encoder = load_encoder(str(embedded_checkpoint))
    report = build_collection(
        LocalDocuments(encoder), tmp_path, "book", source, window=WindowSettings(256, 64)
    )
    assert report.truncated == 0
    snapshot = Collection.open(tmp_path, "book").snapshot()
    for start in (len(text) - 1900, len(text) - 1000, len(text) - 210):
        sentence = text[start : start + 200]
        hit = snapshot.search(encode(encoder, [sentence], "query")).hits[0]
        assert hit.document.id == "book"
        assert hit.window is not None
        assert hit.window.start <= start + 20
        assert start + 180 <= hit.window.end
