"""Parquet: what is written is read back to the last digit, and nothing else is taken for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tercet.index.candidates import Weights
from tercet.index.collection import Collection, list_collections
from tercet.index.errors import FingerprintMismatchError
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.errors import SourceError
from tercet.ingest.ready import build_ready
from tercet.models.encoder import encode
from tercet.models.representations import OUTPUTS
from tercet.transfer.errors import TargetExistsError, TransferError
from tercet.transfer.parquet.source import ParquetSource
from tercet.transfer.parquet.target import ParquetTarget
from tercet.transfer.push import export
from tests.conftest import TinyEncoder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "out.parquet"


def exported(collection: Collection, file: Path, **options: Any) -> Snapshot:
    snapshot = collection.snapshot()
    assert export(snapshot, ParquetTarget(file, snapshot.settings), **options) == 57
    return snapshot


def require_same_answers(own: Snapshot, other: Snapshot, tiny: Any, texts: list[str]) -> None:
    assert own.documents == other.documents
    weights = Weights(1, 1, 1, 0.3 if own.settings.bm25 else 0)
    for text in texts:
        query = encode(tiny, [text], "query")
        first, second = (
            each.search(query, text=text, top_k=60, weights=weights).hits for each in (own, other)
        )
        assert first == second
        first_id = first[0].document.id
        assert str(own.explanations(query, [first_id])[0]) == str(other.explanations(query, [first_id])[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "idf", "float16", "none", "windows"])
def test_a_round_trip_answers_to_the_last_digit(
    make: Any, tiny: Any, file: Path, tmp_path: Path, queries: list[str], kind: str
) -> None:
    own = exported(make(kind), file)
    root = tmp_path / "other"
    report = build_ready(LocalDocuments(tiny), root, "back", ParquetSource(file))
    assert (report.documents, report.tokens, report.skipped) == (57, 0, 0)
    assert verify(root, "back") == []
    back = Collection.open(root, "back").snapshot()
    for name in ("fields", "lexical", "token_codec", "bm25", "window"):
        assert getattr(back.settings, name) == getattr(own.settings, name)
    require_same_answers(own, back, tiny, queries)


@pytest.mark.parametrize("sides", [("dense",), ("sparse",), ("colbert",), ("sparse", "colbert")])
def test_sides_that_an_encoder_lacks_are_lacking_when_it_is_read_back(
    file: Path, tmp_path: Path, sides: Any
) -> None:
    tiny = TinyEncoder(sides=sides)
    encoder = LocalDocuments(tiny)
    (tmp_path / "source.jsonl").write_text(
        "\n".join(json.dumps({"id": text, "text": f"{text} tea"}) for text in ("green", "black", "hot"))
    )
    build_collection(encoder, tmp_path, "some", tmp_path / "source.jsonl", window=False)
    own = Collection.open(tmp_path, "some").snapshot()
    assert export(own, ParquetTarget(file, own.settings)) == 3
    build_ready(encoder, tmp_path / "other", "back", ParquetSource(file))
    back = Collection.open(tmp_path / "other", "back").snapshot()
    assert back.settings.sides == own.settings.sides == sides
    weights = Weights(*(float(side in sides) for side in OUTPUTS))
    query = encode(tiny, ["green tea"], "query")
    first, second = (each.search(query, top_k=5, weights=weights).hits for each in (own, back))
    assert first == second
    assert first[0].document.id == "green"


def test_vectors_of_a_residual_codec_come_back_as_they_are(eight: Any, file: Path, tmp_path: Path) -> None:
    """Decoded, and stored as int8: another codebook would lose as much once more."""
    words = np.random.default_rng(0).choice(["tea", "water", "hot", "rail", "steam", "leaf"], (120, 20))
    lines = [json.dumps({"id": f"d{row}", "text": " ".join(text)}) for row, text in enumerate(words)]
    (tmp_path / "source.jsonl").write_text("\n".join(lines))
    encoder = LocalDocuments(eight)
    build_collection(
        encoder, tmp_path, "coded", tmp_path / "source.jsonl", token_codec="residual1", window=False
    )
    own = Collection.open(tmp_path, "coded").snapshot()
    assert export(own, ParquetTarget(file, own.settings)) == 120
    build_ready(encoder, tmp_path / "other", "back", ParquetSource(file))
    back = Collection.open(tmp_path / "other", "back").snapshot()
    assert (back.settings.token_codec, back.settings.codebook) == ("int8", None)
    query = encode(eight, ["hot tea"], "query")
    first, second = (
        {hit.document.id: hit.score for hit in each.search(query, top_k=100).hits} for each in (own, back)
    )
    assert first == pytest.approx(second, abs=0.01)
    with pytest.raises(SourceError, match="residual1 learns a codebook from texts"):
        build_ready(
            encoder, tmp_path / "other", "x", ParquetSource(file), settings={"token_codec": "residual1"}
        )


def test_tokens_that_share_vectors_are_not_joined_again(
    make: Any, tiny: Any, file: Path, tmp_path: Path
) -> None:
    own = exported(make("pooled"), file)
    encoder, root, source = LocalDocuments(tiny), tmp_path / "other", ParquetSource(file)
    build_ready(encoder, root, "back", source)
    build_ready(encoder, root, "back", ParquetSource(file), mode="upsert")
    back = Collection.open(root, "back")
    assert (back.settings.token_codec, back.settings.token_pooling) == ("int8", 2)
    documents = own.page(None, 100)
    assert len(documents) == 57
    for document in documents:
        first, second = (each.stored(document.id)[1] for each in (own, back.snapshot()))
        assert first is not None
        assert second is not None
        assert first.colbert is not None
        assert second.colbert is not None
        np.testing.assert_array_equal(first.colbert.vectors, second.colbert.vectors)
    build_ready(encoder, root, "apart", ParquetSource(file), settings={"token_pooling": 1})
    with pytest.raises(SourceError, match="has token pooling 2, and collection 'more' has 3"):
        build_ready(encoder, root, "more", ParquetSource(file), settings={"token_pooling": 3})


def test_the_codec_sign_comes_back(tmp_path: Path, eight: Any, file: Path) -> None:
    source, encoder = tmp_path / "source.jsonl", LocalDocuments(eight)
    source.write_text('{"id": "a", "text": "hot tea"}\n{"id": "b", "text": "the train leaves"}')
    build_collection(encoder, tmp_path, "signs", source, token_codec="sign", window=False)
    own = Collection.open(tmp_path, "signs").snapshot()
    assert export(own, ParquetTarget(file, own.settings)) == 2
    build_ready(encoder, tmp_path / "other", "back", ParquetSource(file))
    back = Collection.open(tmp_path / "other", "back").snapshot()
    assert (back.settings.token_codec, back.settings.codebook) == ("sign", own.settings.codebook)
    require_same_answers(own, back, eight, ["tea", "a train"])


def test_a_folder_of_parts_and_an_upsert(make: Any, tiny: Any, tmp_path: Path, queries: list[str]) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    collection = make("idf")
    own = exported(collection, folder / "a.parquet")
    table = pyarrow.parquet.read_table(folder / "a.parquet")
    pyarrow.parquet.write_table(table.slice(0, 20), folder / "a.parquet")
    pyarrow.parquet.write_table(table.slice(20), folder / "b.parquet")
    source = ParquetSource(folder)
    assert source.total == 57
    build_ready(LocalDocuments(tiny), tmp_path / "other", "back", source)
    back = Collection.open(tmp_path / "other", "back")
    require_same_answers(own, back.snapshot(), tiny, queries)
    pyarrow.parquet.write_table(table.slice(0, 1), folder / "a.parquet")
    build_ready(
        LocalDocuments(tiny), tmp_path / "other", "back", ParquetSource(folder / "a.parquet"), mode="upsert"
    )
    require_same_answers(own, back.snapshot(), tiny, queries)


def test_the_printed_script_gives_our_answer(
    make: Any, file: Path, queries: list[str], ask: Any, hits: Any, run_script: Any, require_same_order: Any
) -> None:
    snapshot = exported(make("idf"), file)
    for text in queries[:5]:
        script = ParquetTarget(file, snapshot.settings).query(ask(snapshot, text))
        require_same_order(run_script(script), hits(snapshot, text))


def test_vectors_of_another_encoder_are_refused_with_both_fingerprints(
    make: Any, tiny: Any, file: Path, tmp_path: Path
) -> None:
    exported(make("plain"), file)
    other = type(tiny)(seed=1)
    with pytest.raises(FingerprintMismatchError) as caught:
        build_ready(LocalDocuments(other), tmp_path / "other", "back", ParquetSource(file))
    assert tiny.info.fingerprint in str(caught.value)
    assert other.info.fingerprint in str(caught.value)
    assert list_collections(tmp_path / "other") == []


def test_a_collection_with_other_parts_is_refused(make: Any, tiny: Any, file: Path, tmp_path: Path) -> None:
    exported(make("none"), file)
    source, root = ParquetSource(file), tmp_path / "collections"
    with pytest.raises(SourceError, match="has no token vectors, and collection 'x' stores them"):
        build_ready(LocalDocuments(tiny), root, "x", source, settings={"token_codec": "int8"})
    make("windows")
    exported(make("plain"), file, overwrite=True)
    source = ParquetSource(file)
    with pytest.raises(
        SourceError, match="has no windows, and collection 'windows' has windows of 12 tokens"
    ):
        build_ready(LocalDocuments(tiny), root, "windows", source)
    assert list_collections(root) == ["none", "plain", "windows"]
    assert Collection.open(root, "windows").snapshot().documents == 57


BAD: dict[str, tuple[Any, str]] = {
    "text": (None, '"text" is missing'),
    "id": ("", '"id" is empty'),
    "metadata": ("{", "not valid JSON"),
    "dense": ([1.0, 0.0], "dense has not 8 values"),
    "dense ": ([2.0] + [0.0] * 7, "dense has a vector of length 2"),
    "dense  ": ([None] + [0.0] * 7, "dense is null, or a value of it is"),
    "dense   ": ([float("nan")] * 8, "dense has a vector of length nan"),
    "sparse_token_ids": ([3], "have not as many values"),
    "sparse_weights": (None, "sparse_weights is null"),
    "colbert": ([[1.0, 0.0]], "a vector in colbert has not 4 values"),
    "colbert ": ([[3.0, 0.0, 0.0, 0.0]], "colbert has a vector of length 3"),
    "colbert  ": (None, "colbert is null"),
}


@pytest.mark.slow
@pytest.mark.parametrize("column", sorted(BAD))
def test_a_malformed_row_stops_the_build_or_is_listed(
    make: Any, tiny: Any, file: Path, tmp_path: Path, column: str
) -> None:
    exported(make("plain"), file)
    value, reason = BAD[column]
    change(file, 4, {column.strip(): value})
    encoder, root = LocalDocuments(tiny), tmp_path / "other"
    with pytest.raises(SourceError) as caught:
        build_ready(encoder, root, "back", ParquetSource(file))
    assert f"{file} row 5: " in str(caught.value)
    assert reason in str(caught.value)
    assert list_collections(root) == []
    report = build_ready(encoder, root, "back", ParquetSource(file), on_error="skip")
    assert (report.documents, report.skipped) == (56, 1)
    assert report.skips[0].position == f"{file} row 5"
    assert reason in report.skips[0].reason
    assert verify(root, "back") == []


def test_rows_with_values_out_of_range(make: Any, tiny: Any, file: Path, tmp_path: Path) -> None:
    exported(make("plain"), file)
    change(file, 2, {"sparse_token_ids": [5, 5], "sparse_weights": [1.0, 1.0]})
    change(file, 3, {"sparse_token_ids": [5, 900], "sparse_weights": [1.0, 1.0]})
    change(file, 4, {"sparse_token_ids": [5], "sparse_weights": [-1.0]})
    change(file, 5, {"metadata": '{"year": "no number"}'})
    change(file, 6, {"id": pyarrow.parquet.read_table(file)["id"][0].as_py()})
    report = build_ready(LocalDocuments(tiny), tmp_path / "o", "back", ParquetSource(file), on_error="skip")
    assert (report.documents, report.skipped) == (52, 5)
    said = " ".join(skip.reason for skip in report.skips)
    for reason in (
        "holds 5 twice",
        "holds 900; ",
        "holds -1.0; a weight is above 0",
        "integer",
        "occurs already",
    ):
        assert reason in said


def test_a_file_that_no_export_wrote(make: Any, tmp_path: Path, file: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "text": ["x"]}), file)
    with pytest.raises(SourceError, match="does not say which encoder"):
        ParquetSource(file)
    exported(make("plain"), file, overwrite=True)
    table = pyarrow.parquet.read_table(file)
    pyarrow.parquet.write_table(table.drop_columns(["colbert"]), file)
    with pytest.raises(SourceError, match=r"column colbert is missing; it must be list<.*list<.*float"):
        ParquetSource(file)
    described = json.loads(table.schema.metadata[b"tercet"])
    pyarrow.parquet.write_table(
        table.replace_schema_metadata({"tercet": json.dumps({**described, "format_version": 2})}), file
    )
    with pytest.raises(SourceError, match="format version 2; this release reads version 1"):
        ParquetSource(file)
    file.write_bytes(b"PAR1 no")
    with pytest.raises(SourceError, match="not a readable Parquet file"):
        ParquetSource(file)
    with pytest.raises(SourceError, match="no such Parquet file"):
        ParquetSource(tmp_path / "none")


def test_a_damaged_file_publishes_nothing(make: Any, tiny: Any, tmp_path: Path, file: Path) -> None:
    exported(make("plain"), file)
    content = bytearray(file.read_bytes())
    content[200:400] = bytes(200)
    file.write_bytes(content)
    with pytest.raises(SourceError, match="damaged"):
        build_ready(LocalDocuments(tiny), tmp_path / "other", "back", ParquetSource(file))
    assert list_collections(tmp_path / "other") == []


def test_a_file_is_there_as_a_whole_or_not_at_all(make: Any, file: Path, monkeypatch: Any) -> None:
    collection = make("plain")
    exported(collection, file)
    before = file.read_bytes()
    with pytest.raises(TargetExistsError, match="give --overwrite"):
        exported(collection, file)

    def fail(self: Any, documents: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(ParquetTarget, "write", fail)
    with pytest.raises(TransferError, match="the disk is gone; nothing was written"):
        exported(collection, file, overwrite=True)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.glob("out*")] == ["out.parquet"]


@pytest.mark.slow
def test_texts_alone_are_read_from_an_export(make: Any, tiny: Any, file: Path, tmp_path: Path) -> None:
    """A build without `--from` encodes the texts; representations become no metadata."""
    own = exported(make("plain"), file)
    other = type(tiny)(seed=1)
    build_collection(LocalDocuments(other), tmp_path / "other", "texts", file)
    found = Collection.open(tmp_path / "other", "texts").snapshot()
    assert found.page(None, 60) == own.page(None, 60)


def change(file: Path, row: int, cells: dict[str, Any]) -> None:
    """Replaces cells of a row."""
    table = pyarrow.parquet.read_table(file)
    for column, value in cells.items():
        values = table[column].to_pylist()
        values[row] = value
        place = table.schema.get_field_index(column)
        table = table.set_column(
            place, table.schema.field(place), pyarrow.array(values, table.schema.field(place).type)
        )
    pyarrow.parquet.write_table(table, file)
    assert np.size(table["id"]) == table.num_rows
