"""Collections of residual codecs: their codebook is learned from the source, and goes wherever they go."""

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.backups.making import make_backup
from tercet.index.backups.restoring import restore_as
from tercet.index.backups.store import BackupStore
from tercet.index.candidates import CandidateLimits, Document
from tercet.index.catalog.settings import CODEBOOK_FILE
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify
from tercet.index.windows.settings import WindowSettings
from tercet.ingest import codebook
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.document_windows import cutter_for, encoded_texts
from tercet.ingest.errors import BuildCancelledError, SourceError
from tercet.ingest.progress import BuildProgress
from tercet.ingest.representation_cache import RepresentationCache
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.target import settings_for
from tercet.models.encoder import encode
from tercet.models.representations import Representations
from tercet.models.stream import Known, Watch
from tests.conftest import WORDS, TinyEncoder

ALL = CandidateLimits(1000, 1000)


def texts(count: int) -> list[str]:
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(WORDS, generator.integers(10, 25))) for _ in range(count)]


def source(folder: Path, count: int = 120) -> Path:
    lines = [json.dumps({"id": f"d{row}", "text": text}) for row, text in enumerate(texts(count))]
    (folder / "source.jsonl").write_text("\n".join(lines))
    return folder / "source.jsonl"


def scores(collection: Collection, encoder: Any, query: str = "hot tea at the station") -> dict[str, Any]:
    hits = collection.snapshot().search(encode(encoder, [query], "query"), top_k=1000, candidates=ALL).hits
    return {hit.document.id: hit.scores for hit in hits}


def build(encoder: Any, root: Path, codec: str, name: str = "coded", **options: Any) -> Collection:
    build_collection(LocalDocuments(encoder), root, name, source(root), token_codec=codec, **options)
    return Collection.open(root, name)


@pytest.mark.slow
def test_a_build_learns_its_codebook_and_scores_come_near(tmp_path: Path, eight: Any) -> None:
    plain = scores(build(eight, tmp_path, "float16", "plain"), eight)
    off = {}
    for codec, code_bytes in (("residual1", 1), ("residual2", 2), ("residual4", 4)):
        collection = build(eight, tmp_path, codec, codec)
        assert verify(tmp_path, codec) == []
        store = collection.snapshot().stored("d0")[1]
        assert store is not None
        assert collection.settings.codebook is not None
        assert collection.settings.codebook.code_bytes == code_bytes
        found = scores(collection, eight)
        assert found.keys() == plain.keys()
        off[codec] = max(abs(found[id].colbert - plain[id].colbert) for id in plain)
    assert off["residual4"] <= off["residual1"] < 0.05


def test_later_builds_and_writes_use_the_same_codebook(tmp_path: Path, eight: Any) -> None:
    collection = build(eight, tmp_path, "residual1")
    first, book = scores(collection, eight), collection.settings.codebook
    build_collection(LocalDocuments(eight), tmp_path, "coded", source(tmp_path))
    again = Collection.open(tmp_path, "coded")
    assert (again.settings.codebook, scores(again, eight)) == (book, first)
    with LiveCollection(again) as live:
        live.put([Document("new", texts(1)[0])], encode(eight, texts(1), "document"))
        for _ in range(2):
            hit = next(
                hit
                for hit in live.snapshot().search(encode(eight, ["tea"], "query"), top_k=200).hits
                if hit.document.id == "new"
            )
            twin = live.snapshot().search(encode(eight, ["tea"], "query"), top_k=200, candidates=ALL)
            assert hit.scores == next(hit.scores for hit in twin.hits if hit.document.id == "d0")
            live.flush()
    assert verify(tmp_path, "coded") == []
    with LiveCollection(Collection.open(tmp_path, "coded")) as live:
        assert live.snapshot().get("new") is not None


def test_a_backup_has_the_codebook(tmp_path: Path, eight: Any) -> None:
    collection = build(eight, tmp_path, "residual2")
    store = BackupStore(tmp_path / "backups")
    restored = restore_as(tmp_path, "restored", store, make_backup(collection, store))
    assert scores(restored, eight) == scores(collection, eight)
    assert verify(tmp_path, "restored") == []


def test_an_altered_codebook_is_found(tmp_path: Path, eight: Any) -> None:
    build(eight, tmp_path, "residual1")
    file = tmp_path / "coded" / CODEBOOK_FILE
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert any(CODEBOOK_FILE in problem for problem in verify(tmp_path, "coded"))


def test_as_many_documents_are_encoded_as_are_worth_it(
    tmp_path: Path, eight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the source, more where that has too few vectors, less where it has too many."""

    def learned_from(enough: int, most: int) -> int:
        monkeypatch.setattr(codebook, "ENOUGH_VECTORS", enough)
        monkeypatch.setattr(codebook, "MOST_VECTORS", most)
        some = codebook._sample(LocalDocuments(eight), texts(400), 40, RepresentationCache(), lambda _: None)
        return len(some)

    monkeypatch.setattr(codebook, "TEXTS_AT_ONCE", 10)
    encoded = encode(eight, texts(400), "document").colbert
    assert encoded is not None
    lengths = np.diff(encoded.offsets)
    assert learned_from(1, 10_000) == lengths[:40].sum()
    assert learned_from(int(lengths[:75].sum()), 10_000) == lengths[:80].sum()
    assert learned_from(1, int(lengths[:25].sum())) == lengths[:30].sum()


def test_progress_tells_of_learning_first(tmp_path: Path, eight: Any) -> None:
    seen: list[BuildProgress] = []
    build(eight, tmp_path, "residual1", progress=seen.append)
    phases = [each.phase for each in seen]
    assert list(dict.fromkeys(phases)) == ["sampling", "learning", "encoding", "indexing"]
    for phase in phases:
        shares = [each.fraction for each in seen if each.phase == phase]
        assert shares == sorted(shares)
        assert 0 <= shares[0] <= shares[-1] <= 1
    assert max(each.fraction for each in seen if each.phase == "learning") > 0.8
    assert (seen[0].documents, seen[0].tokens, seen[-1].documents) == (0, 0, 120)


def test_by_default_a_build_takes_the_codec_of_an_empty_collection(tmp_path: Path, eight: Any) -> None:
    build_collection(LocalDocuments(eight), tmp_path, "built", source(tmp_path))
    assert Collection.open(tmp_path, "built").settings == settings_for("built", eight.info, {})


def test_nothing_is_created_where_no_codebook_can_be_learned(tmp_path: Path, eight: Any, tiny: Any) -> None:
    with pytest.raises(
        SourceError, match="token vectors of 8 values to learn a codebook from, which takes 1024"
    ):
        build_collection(
            LocalDocuments(eight), tmp_path, "coded", source(tmp_path, 20), token_codec="residual1"
        )
    with pytest.raises(SourceError, match="4 values"):
        build(tiny, tmp_path, "residual1")
    with pytest.raises(BuildCancelledError):
        build(eight, tmp_path, "residual1", cancelled=lambda: True)
    assert not (tmp_path / "coded").exists()


def test_documents_are_drawn_from_all_over_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codebook, "MOST_DOCUMENTS", 50)
    drawn, wanted = codebook._drawn_texts(DocumentReader(source(tmp_path, 400)), None, 512, lambda: None)
    assert wanted == 400 / codebook.SHARE
    assert len(set(drawn)) == len(drawn) == 50
    places = sorted(map(texts(400).index, drawn))
    assert places[0] < 50
    assert places[-1] >= 350


def test_of_long_documents_their_beginnings_are_kept(
    tmp_path: Path, eight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        codebook, "DRAWN_CHARACTERS", 40 * codebook.CHARACTERS_PER_TOKEN * eight.info.max_length
    )
    lines = [json.dumps({"id": f"d{row}", "text": "hot tea " * 10_000}) for row in range(50)]
    (tmp_path / "long.jsonl").write_text("\n".join(lines))
    drawn, wanted = codebook._drawn_texts(
        DocumentReader(tmp_path / "long.jsonl"), None, eight.info.max_length, lambda: None
    )
    assert (len(drawn), wanted) == (40, 50 / codebook.SHARE)
    assert {len(text) for text in drawn} == {codebook.CHARACTERS_PER_TOKEN * eight.info.max_length}


def test_a_sample_has_no_more_bytes_than_it_may(eight: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codebook, "SAMPLE_BYTES", 1_000 * codebook.VALUE_BYTES * 8)
    monkeypatch.setattr(codebook, "TOKENS_AT_ONCE", eight.info.max_length)
    sample = codebook._sample(LocalDocuments(eight), texts(500), 500, RepresentationCache(), lambda _: None)
    assert 1_000 <= len(sample) <= 1_000 + eight.info.max_length


def test_what_is_wrong_is_told_before_anything_is_learned(tmp_path: Path, eight: Any) -> None:
    path = source(tmp_path)
    path.write_text(path.read_text() + '\n{"id": "bad"}')
    told: list[BuildProgress] = []
    with pytest.raises(SourceError, match='line 121: "text" is missing'):
        build_collection(
            LocalDocuments(eight), tmp_path, "coded", path, token_codec="residual1", progress=told.append
        )
    assert not told


def test_a_build_ends_while_its_source_is_read_to_learn_from(
    tmp_path: Path, eight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codebook, "DOCUMENTS_PER_LOOK", 50)
    read: list[int] = []

    def cancelled() -> bool:
        read.append(1)
        return True

    with pytest.raises(BuildCancelledError):
        build(eight, tmp_path, "residual1", cancelled=cancelled)
    assert read == [1]


SECONDS = 0.05


class Counting(LocalDocuments):
    """Counts the texts that it encodes, and takes a moment for each call."""

    def __init__(self, encoder: Any) -> None:
        super().__init__(encoder)
        self.texts: list[str] = []
        self.seconds = 0.0

    def encode(self, texts: Sequence[str]) -> Representations:
        self.texts += texts
        time.sleep(SECONDS)
        self.seconds += SECONDS
        return super().encode(texts)

    def encode_stream(self, texts: Iterable[str], known: Known, watch: Watch) -> Any:
        def counted(text: str) -> Representations | None:
            found = known(text)
            self.texts += [] if found is not None else [text]
            return found

        return super().encode_stream(texts, counted, watch)


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, WindowSettings(20, 5)])
def test_what_a_codebook_is_learned_from_is_encoded_once(
    tmp_path: Path, eight: Any, window: WindowSettings | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the whole build counts as its time."""
    monkeypatch.setattr(codebook, "TEXTS_AT_ONCE", 10)
    counting, began = Counting(eight), time.monotonic()
    done = build_collection(
        counting,
        tmp_path,
        "once",
        source(tmp_path),
        token_codec="residual1",
        window=False if window is None else window,
    )
    whole = time.monotonic() - began
    once = Collection.open(tmp_path, "once")
    cutter = cutter_for(once.settings, eight.tokenizer)
    reader = DocumentReader(source(tmp_path))
    wanted = [text.text for document in reader for text in encoded_texts(document, cutter)]
    assert sorted(counting.texts) == sorted(wanted)
    assert len(wanted) > 120 or window is None
    assert counting.seconds <= done.seconds <= whole

    kept = scores(once, eight)
    monkeypatch.setattr(RepresentationCache, "keep", lambda *_: None)
    again = Counting(eight)
    build_collection(
        again,
        tmp_path,
        "twice",
        source(tmp_path),
        token_codec="residual1",
        window=once.settings.window or False,
    )
    assert len(again.texts) > len(wanted)
    assert scores(Collection.open(tmp_path, "twice"), eight) == kept


def test_a_codec_for_token_vectors_that_an_encoder_does_not_give_is_refused(tmp_path: Path) -> None:
    encoder = TinyEncoder(sides=("dense", "sparse"))
    with pytest.raises(SourceError, match="gives no token vectors, which token_codec int8 would store"):
        build(encoder, tmp_path, "int8")
    assert not (tmp_path / "coded").exists()
    assert build(encoder, tmp_path, "none").settings.token_codec == "none"
