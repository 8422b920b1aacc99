"""Building collections: order, progress, failure, cancellation, rebuilding."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection, list_collections, open_stage
from tercet.index.errors import CollectionExistsError, CollectionNotFoundError, FingerprintMismatchError
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify
from tercet.index.windows.settings import WindowSettings
from tercet.ingest import encoded
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.encoded import EncodedDocuments
from tercet.ingest.errors import BuildCancelledError, SourceError
from tercet.ingest.passages.split import Split
from tercet.ingest.progress import BuildProgress
from tercet.ingest.publishing import build_target
from tercet.ingest.sources.reading import Reading
from tercet.models import stream
from tercet.models.encoder import EncoderInfo, encode
from tercet.models.errors import EncoderUnavailableError
from tercet.models.representations import Representations


def corpus(path: Path, count: int) -> Path:
    """Documents of varied length; every one has its number in its text."""
    lines = [
        {"id": f"d{i:04d}", "text": " ".join(["tea water"] * (i * 7 % 11)) + f" {i}"} for i in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_documents_keep_their_own_representations(tmp_path: Path, tiny: Any, monkeypatch: Any) -> None:
    """Small groups and slices, so that sorting, splitting and reordering all happen."""
    monkeypatch.setattr(stream, "WINDOW_TOKENS", 100)
    monkeypatch.setattr(stream, "SLICE_TOKENS", 30)
    source = corpus(tmp_path / "x.jsonl", 57)
    report = build_collection(LocalDocuments(tiny), tmp_path, "many", source, token_codec="float16")
    assert (report.documents, report.snapshot, report.skipped, report.truncated) == (57, "000001", 0, 0)
    texts = [json.loads(line)["text"] for line in source.read_text().splitlines()]
    expected = encode(tiny, texts)
    assert report.tokens == int(expected.tokens.sum())
    assert verify(tmp_path, "many") == []

    snapshot = Collection.open(tmp_path, "many").snapshot()
    ids, components = snapshot.score_all(encode(tiny, ["tea 7"], "query"))
    query = encode(tiny, ["tea 7"], "query")
    assert expected.dense is not None
    assert query.dense is not None
    dense = dict(zip(ids, components[:, 0], strict=True))
    for row in range(57):
        assert dense[f"d{row:04d}"] == pytest.approx(float(expected.dense[row] @ query.dense[0]), abs=2e-3)


def test_blank_documents_are_built_as_such(tmp_path: Path, tiny: Any) -> None:
    lines = [
        {"id": "blank", "text": "  "},
        {"id": "empty", "text": "", "title": ""},
        {"id": "tea", "text": "tea"},
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert build_collection(LocalDocuments(tiny), tmp_path, "x", tmp_path / "x.jsonl").documents == 3
    snapshot = Collection.open(tmp_path, "x").snapshot()
    ids, components = snapshot.score_all(encode(tiny, ["the tea"], "query"))
    scores = dict(zip(ids, components.tolist(), strict=True))
    assert scores["blank"] == scores["empty"] == [0, 0, 0]
    assert all(scores["tea"])
    assert snapshot.get("blank") is not None


def test_progress_is_honest(tmp_path: Path, tiny: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(stream, "WINDOW_TOKENS", 100)
    seen: list[BuildProgress] = []
    build_collection(
        LocalDocuments(tiny), tmp_path, "x", corpus(tmp_path / "x.jsonl", 40), progress=seen.append
    )
    assert [now.documents for now in seen] == sorted(now.documents for now in seen)
    assert [now.tokens for now in seen] == sorted(now.tokens for now in seen)
    assert {now.total for now in seen} == {40}
    assert [now.phase for now in seen] == sorted(now.phase for now in seen), "encoding, indexing"
    assert seen[-1].phase == "indexing"
    assert max(now.fraction for now in seen if now.phase == "encoding") == 1
    assert seen[-1].documents == 40
    assert len({now.documents for now in seen}) > 3


def test_long_documents_have_windows_unless_there_shall_be_none(tmp_path: Path, tiny: Any) -> None:
    encoder, source = LocalDocuments(tiny), tmp_path / "x.jsonl"
    source.write_text(json.dumps({"id": "a", "text": "tea " * 100}) + '\n{"id": "b", "text": "x"}')
    report = build_collection(encoder, tmp_path, "x", source)
    # The encoder reads 32 tokens, two of them special; the overlap is a quarter.
    assert Collection.open(tmp_path, "x").settings.window == WindowSettings(32, 8)
    assert (report.truncated, report.windows) == (0, 1 + (100 - 8 + 30 - 8 - 1) // (30 - 8))
    report = build_collection(encoder, tmp_path, "cut", source, window=False)
    assert Collection.open(tmp_path, "cut").settings.window is None
    assert (report.truncated, report.windows) == (1, None)
    for window in (False, WindowSettings(16, 4)):
        with pytest.raises(CollectionExistsError, match="exists with windows of 32 tokens, overlap 8"):
            build_collection(encoder, tmp_path, "x", source, window=window)
    with pytest.raises(CollectionExistsError, match="exists without windows, and is asked for with windows"):
        build_collection(encoder, tmp_path, "cut", source, window=WindowSettings(32, 8))


@pytest.mark.parametrize("content", ['{"id": "a", "text": "x"}\n{', "", "{}\n{}"])
def test_a_failed_first_build_leaves_no_collection(tmp_path: Path, tiny: Any, content: str) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(content)
    with pytest.raises(SourceError):
        build_collection(
            LocalDocuments(tiny),
            tmp_path / "c",
            "x",
            source,
            on_error="stop" if content[-1:] == "{" else "skip",
        )
    with pytest.raises(CollectionNotFoundError):
        Collection.open(tmp_path / "c", "x")
    assert list((tmp_path / "c").glob("*/")) == []


def test_a_failed_rebuild_leaves_the_former_snapshot(tmp_path: Path, tiny: Any) -> None:
    build_collection(LocalDocuments(tiny), tmp_path, "x", corpus(tmp_path / "x.jsonl", 5))
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}')
    with pytest.raises(Exception, match="occurs already"):
        build_collection(LocalDocuments(tiny), tmp_path, "x", tmp_path / "bad.jsonl")
    collection = Collection.open(tmp_path, "x")
    assert (collection.current(), collection.snapshot().documents) == ("000001", 5)
    assert len(list((tmp_path / "x" / "segments").iterdir())) == 1
    report = build_collection(LocalDocuments(tiny), tmp_path, "x", corpus(tmp_path / "x.jsonl", 7))
    assert (report.snapshot, collection.snapshot().documents) == ("000002", 7)


def test_cancelling(tmp_path: Path, tiny: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(stream, "WINDOW_TOKENS", 50)
    done: list[BuildProgress] = []
    with pytest.raises(BuildCancelledError):
        build_collection(
            LocalDocuments(tiny),
            tmp_path,
            "x",
            corpus(tmp_path / "x.jsonl", 100),
            progress=done.append,
            cancelled=lambda: len(done) > 3,
        )
    assert not (tmp_path / "x").exists()


def test_another_encoder_or_other_settings_are_refused(tmp_path: Path, tiny: Any) -> None:
    source = corpus(tmp_path / "x.jsonl", 3)
    build_collection(LocalDocuments(tiny), tmp_path, "x", source, fields={"year": "integer"})
    build_collection(LocalDocuments(tiny), tmp_path, "x", source)  # what is not asked for stays as it is
    assert Collection.open(tmp_path, "x").settings.fields == {"year": "integer"}
    with pytest.raises(
        CollectionExistsError, match="exists with token_codec int8, and is asked for with token_codec float16"
    ):
        build_collection(LocalDocuments(tiny), tmp_path, "x", source, token_codec="float16")
    other = type(tiny)(seed=1)
    with pytest.raises(FingerprintMismatchError) as caught:
        build_collection(LocalDocuments(other), tmp_path, "x", source)
    first, second = (encoder.info.fingerprint for encoder in (tiny, other))
    assert str(caught.value) == (
        f"collection 'x' was built with encoder 'tiny' (fingerprint {first}), and this is 'tiny' "
        f"(fingerprint {second}): give --checkpoint the one of that fingerprint (or TERCET_CHECKPOINT), or "
        "build it again under another name"
    )


def test_the_encoder_recommends_the_lexical_side_of_a_new_collection(tmp_path: Path, tiny: Any) -> None:
    class Advising(type(tiny)):  # type: ignore[misc]  # a fixture's class
        @property
        def info(self) -> EncoderInfo:
            return replace(super().info, lexical="idf")

    source, advising = corpus(tmp_path / "x.jsonl", 3), LocalDocuments(Advising())

    def built(name: str, encoder: LocalDocuments, **options: Any) -> str:
        build_collection(encoder, tmp_path, name, source, **options)
        return Collection.open(tmp_path, name).settings.lexical

    assert built("x", LocalDocuments(tiny)) == "plain"
    assert built("x", advising) == "plain"  # one that exists keeps its own
    assert built("y", advising) == "idf"
    assert built("y", LocalDocuments(tiny)) == "idf"
    assert built("z", advising, lexical="plain") == "plain"
    assert verify(tmp_path, "y") == []
    with pytest.raises(
        CollectionExistsError, match="exists with lexical plain, and is asked for with lexical idf"
    ):
        built("z", advising, lexical="idf")


def test_an_encoder_that_fails_ends_the_build(tmp_path: Path, tiny: Any) -> None:
    class Failing(type(tiny)):  # type: ignore[misc]
        def encode_tokens(self, batch: Any, outputs: Any = (), adapters: Any = None) -> Representations:
            raise EncoderUnavailableError("the device has gone")

    with pytest.raises(EncoderUnavailableError, match="the device has gone"):
        build_collection(LocalDocuments(Failing()), tmp_path, "x", corpus(tmp_path / "x.jsonl", 3))
    assert not (tmp_path / "x").exists()


def test_an_upsert_leaves_other_documents(tmp_path: Path, tiny: Any) -> None:
    encoder, source = LocalDocuments(tiny), tmp_path / "new.jsonl"
    build_collection(encoder, tmp_path, "x", corpus(tmp_path / "x.jsonl", 5))
    source.write_text('{"id": "d0001", "text": "new tea"}\n{"id": "e", "text": "coffee"}')
    report = build_collection(encoder, tmp_path, "x", source, mode="upsert")
    collection = Collection.open(tmp_path, "x")
    assert (report.documents, report.snapshot) == (2, collection.current())
    found = collection.snapshot().page(None, 10)
    assert [document.id for document in found] == [*(f"d{number:04d}" for number in range(5)), "e"]
    assert found[1].text == "new tea"
    assert verify(tmp_path, "x") == []
    assert list(collection.layout.builds.iterdir()) == []
    source.write_text("{")
    with pytest.raises(SourceError):
        build_collection(encoder, tmp_path, "x", source, mode="upsert")
    assert collection.snapshot().page(None, 10) == found
    build_collection(encoder, tmp_path, "first", corpus(tmp_path / "x.jsonl", 3), mode="upsert")
    assert Collection.open(tmp_path, "first").snapshot().documents == 3


def test_a_staged_build_is_adopted_by_the_process_that_writes(tmp_path: Path, tiny: Any) -> None:
    encoder = LocalDocuments(tiny)
    build_collection(encoder, tmp_path, "x", corpus(tmp_path / "x.jsonl", 5))
    collection = Collection.open(tmp_path, "x")
    with LiveCollection(collection) as live, live.begin_build() as begun:
        live.put([Document("live", "tea")], encode(tiny, ["tea"]))
        source = corpus(tmp_path / "y.jsonl", 8)
        build_collection(encoder, tmp_path, "x", source, mark="abc", staged=True)
        assert live.snapshot().documents == 6
        live.adopt(begun, open_stage(collection, "abc").layout, "replace", "abc")
        assert live.snapshot().documents == 9
    manifest = collection.manifest()
    assert manifest is not None
    assert manifest.is_marked("abc")
    with LiveCollection(collection) as live:  # which removes what nobody can adopt any more
        assert not collection.layout.builds.exists()
        assert live.snapshot().documents == 9


def test_a_staged_build_makes_no_collection(tmp_path: Path, tiny: Any) -> None:
    """One that was deleted while the build waited for its encoder stays deleted."""
    source = corpus(tmp_path / "y.jsonl", 2)
    with pytest.raises(CollectionNotFoundError):
        build_collection(LocalDocuments(tiny), tmp_path, "x", source, mark="abc", staged=True)
    assert list_collections(tmp_path) == []


def test_what_an_upserting_job_leaves_counts_for_its_dense_kind(
    tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.index.dense.kinds.SMALLEST_INDEX", 1)
    encoder = LocalDocuments(tiny)
    build_collection(encoder, tmp_path, "x", corpus(tmp_path / "x.jsonl", 40), dense_kind="hnsw")
    collection = Collection.open(tmp_path, "x")
    kinds = {}
    for mode in ("replace", "upsert"):
        with build_target(collection, mode, f"mark-{mode}", staged=True) as target:
            kinds[mode] = dict(target.writer._beside)
    assert kinds == {"replace": {}, "upsert": {"hnsw": 40}}


def test_passages_declare_their_source_and_one_hit_a_document_can_be_had(tmp_path: Path, tiny: Any) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tea.md").write_text("# Tea\n\nhot tea\n\n## Water\n\ntea water\n")
    (docs / "train.md").write_text("# Train\n\nthe train\n")
    reading = Reading(split=Split("markdown"))
    report = build_collection(LocalDocuments(tiny), tmp_path, "docs", docs, reading=reading)
    assert report.documents == 3
    collection = Collection.open(tmp_path, "docs")
    assert collection.settings.fields == {"source": "keyword"}
    query = encode(tiny, ["tea water"], "query")
    found = collection.snapshot().search(query, group_by="source").hits
    assert sorted(hit.document.metadata["source"] for hit in found) == ["tea.md", "train.md"]
    for fields in (None, {"year": "integer"}):  # a second build, as the first was asked for
        name = "years" if fields else "docs"
        for _ in range(2):
            build_collection(LocalDocuments(tiny), tmp_path, name, docs, reading=reading, fields=fields)
    assert Collection.open(tmp_path, "years").settings.fields == {"source": "keyword", "year": "integer"}
    own: Any = {"source": "integer"}
    with pytest.raises(SourceError, match="source"):
        build_collection(LocalDocuments(tiny), tmp_path, "own", docs, reading=reading, fields=own)


def test_passages_are_measured_by_the_encoders_tokenizer(tmp_path: Path, tiny: Any) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(json.dumps({"id": "a", "text": "tea water " * 100}))
    reading = Reading(split=Split("tokens", 20))
    report = build_collection(LocalDocuments(tiny), tmp_path, "cut", source, reading=reading)
    found = Collection.open(tmp_path, "cut").snapshot().page(None, 100)
    assert report.documents == len(found) == 10
    assert all(len(tiny.tokenizer.spans(one.text)) == 20 for one in found)


def test_documents_are_held_by_bytes(tmp_path: Path, tiny: Any, monkeypatch: Any) -> None:
    """However short their texts are: no more is read while much metadata waits to be written."""
    monkeypatch.setattr(encoded, "HELD_BYTES", 100_000)
    lines = [{"id": f"d{n:02d}", "text": f"tea {n}", "more": "x" * 20_000} for n in range(40)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    held: list[int] = []
    fitting = EncodedDocuments._fitting

    def watched(self: EncodedDocuments, texts: Any) -> Any:
        for text in fitting(self, texts):
            held.append(len(self._waiting))
            yield text

    monkeypatch.setattr(EncodedDocuments, "_fitting", watched)
    report = build_collection(LocalDocuments(tiny), tmp_path, "x", tmp_path / "x.jsonl", token_codec="int8")
    assert (report.documents, max(held)) == (40, 5)
    snapshot = Collection.open(tmp_path, "x").snapshot()
    assert [one.metadata["more"] for one in snapshot.page(None, 100)] == ["x" * 20_000] * 40
    ids, components = snapshot.score_all(encode(tiny, ["tea 7"], "query"))
    assert len(ids) == len(components) == 40


BUILD = """
import resource, sys
from pathlib import Path
from tests.conftest import TinyEncoder
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments

encoder = LocalDocuments(TinyEncoder())
source = Path(sys.argv[1])
report = build_collection(encoder, source.parent, "x", source, on_error="skip", token_codec="int8")
own = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(report.documents, report.skipped, report.skips[0].reason, (own + child) // 1024, sep="|")
"""


@pytest.mark.slow
def test_a_small_file_of_long_metadata_takes_bounded_memory(tmp_path: Path, repository: Path) -> None:
    """Each row has the one value of its group, and none of it is in a column that anybody named."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = pyarrow.array([0] + [1] * 100, pyarrow.int32())
    values = pyarrow.array(["b" * 8 * 2**20, "a" * 5 * 2**20])
    table = pyarrow.table(
        {
            "id": [f"d{row}" for row in range(101)],
            "text": ["tea"] * 101,
            "more": pyarrow.DictionaryArray.from_arrays(rows, values),
        }
    )
    options: Any = {"store_schema": False, "dictionary_pagesize_limit": 2**30}
    parquet.write_table(table, tmp_path / "x.parquet", compression="zstd", **options)
    assert (tmp_path / "x.parquet").stat().st_size < 10_000
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path / "x.parquet")],
        cwd=repository, capture_output=True, text=True, check=True,
    )  # fmt: skip
    documents, skipped, reason, peak_mebibytes = done.stdout.strip().split("|")
    assert (documents, skipped) == ("100", "1")
    assert reason == "document 'd0' has 8388619 bytes of metadata; the limit is 8388608: leave some out"
    assert int(peak_mebibytes) < 900
