"""CSV and TSV as people have them: encodings, delimiters, quotes, types of fields, broken rows."""

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.encodings import encoding_of
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading

KOREAN = (
    "id,text,분류\n1,녹차는 팔십 도의 물에 이 분 동안 우린다,차\n"
    "2,기차는 아홉 시에 역을 떠나 바다로 간다,철도\n"
)
JAPANESE = "id\ttext\n1\t緑茶は八十度の湯で二分間入れます。急須に湯を注いでください。\n"


def read(path: Path, content: str | bytes, **options: Any) -> list[Document]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(DocumentReader(path, **options))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_and_line_ends_are_found(tmp_path: Path, delimiter: str, end: str) -> None:
    rows = [
        ["id", "title", "text"],
        ["a", "Tea", '"hot, tea; and ""water"" | x"'],
        ["b", "", '"two\nlines"'],
        [],
    ]
    content = end.join(delimiter.join(row) for row in rows)
    assert read(tmp_path / "x.csv", content) == [
        Document("a", 'hot, tea; and "water" | x', "Tea"),
        Document("b", "two\nlines"),
    ]


@pytest.mark.parametrize(
    ("content", "encoding"), [(KOREAN, "cp949"), (KOREAN, "utf-8-sig"), (KOREAN, "utf-16"), (KOREAN, "utf-8")]
)
def test_encodings_are_found(tmp_path: Path, content: str, encoding: str) -> None:
    first, _ = read(tmp_path / "x.csv", content.encode(encoding))
    assert first == Document("1", "녹차는 팔십 도의 물에 이 분 동안 우린다", None, {"분류": "차"})


def test_encoding_and_delimiter_may_be_given(tmp_path: Path) -> None:
    content = JAPANESE.replace("\t", "^").encode("cp932")
    (found,) = read(tmp_path / "x.csv", content, reading=Reading(encoding="cp932", delimiter="^"))
    assert found.text.startswith("緑茶は八十度の湯で")
    with pytest.raises(SourceError, match=r"x\.csv line 1 or later: a byte 0x.. is no ascii; .*--encoding"):
        read(tmp_path / "x.csv", content, reading=Reading(encoding="ascii"))
    with pytest.raises(SourceError, match=r"the encoding 'klingon' is not known \(--encoding\)"):
        read(tmp_path / "x.csv", content, reading=Reading(encoding="klingon"))
    for encoding in ("undefined", "base64"):
        with pytest.raises(SourceError, match=rf"the encoding '{encoding}' is not known"):
            read(tmp_path / "x.csv", content, reading=Reading(encoding=encoding))
    for delimiter in ('"', "\n", ",,", ""):
        with pytest.raises(SourceError, match="can be no delimiter"):
            read(tmp_path / "x.csv", content, reading=Reading(delimiter=delimiter))


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        ("Größe der Übung", "cp1252"),
        ("thé vert à quatre-vingts degrés", "cp1252"),
        ("não há irmãos à tarde", "cp1252"),
        ("Það er þýðing á íslensku", "cp1252"),
        ("¿Qué hora es? Mañana será otro día.", "cp1252"),
        ("Çiğ köfte nasıl yapılır", "cp1254"),
        ("Zażółć gęślą jaźń", "cp1250"),
        ("Az erdő mellett gyűlölöm a ködöt", "cp1250"),
        ("Ştefan învaţă în ţară", "cp1250"),
        ("Зелёный чай заваривают водой", "cp1251"),
        ("綠茶應該用八十度的水沖泡兩分鐘", "big5"),
        ("绿茶应该用八十度的水冲泡两分钟", "gb18030"),
        ("こんにちは世界、緑茶をどうぞ", "cp932"),
        ("富士山は日本で一番高い山です。静岡県と山梨県にまたがる。", "euc_jp"),
        ("緑茶は八十度のお湯で二分間いれます", "iso2022_jp"),
        ("안녕하세요", "cp949"),
    ],
)
def test_few_words_are_enough_to_find_an_encoding(tmp_path: Path, words: str, encoding: str) -> None:
    (found,) = read(tmp_path / "x.csv", f"id,text\n1,{words}\n".encode(encoding))
    assert found.text == words


def test_a_line_that_says_the_separator(tmp_path: Path) -> None:
    content = "sep=;\r\nid;text\r\na;hot, tea\r\nb\r\n"
    assert read(tmp_path / "x.csv", content, on_error="skip") == [Document("a", "hot, tea")]
    reader = DocumentReader(tmp_path / "x.csv", on_error="skip")
    assert len(list(reader)) == 1
    assert reader.skips[0].position.endswith("line 4")


def test_tab_separated_and_packed(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "X.TSV.gz", gzip.compress(JAPANESE.encode()))
    assert found.id == "1"


def test_cells_of_declared_fields_have_their_types(tmp_path: Path) -> None:
    fields = {"year": "integer", "price": "number", "new": "boolean", "at": "datetime", "kind": "keyword"}
    content = "id,text,year,price,new,at,kind,other\na,x, 1999 ,2.5,TRUE, 2024-05-17 ,k,7\nb,x,,,,,,\n"
    first, second = read(tmp_path / "x.csv", content, fields=fields)
    assert first.metadata == {
        "year": 1999, "price": 2.5, "new": True, "at": "2024-05-17", "kind": "k", "other": "7",
    }  # fmt: skip
    assert second.metadata == {}
    with pytest.raises(SourceError, match=r"x\.csv line 2: .*'year' is declared as integer"):
        read(tmp_path / "x.csv", "id,text,year\na,x,MCMXCIX\n", fields=fields)


def test_broken_rows_are_named_by_line_or_left_out(tmp_path: Path) -> None:
    content = 'id,text,metadata\na,"two\nlines",\nb,x\nc,x,{no}\nd,x,"{""k"": 1}"\n'
    assert [found.id for found in read(tmp_path / "x.csv", content, on_error="skip")] == ["a", "d"]
    reader = DocumentReader(tmp_path / "x.csv", on_error="skip")
    assert [document.metadata for document in reader] == [{}, {"k": 1}]
    assert [str(skip).split("x.csv ")[1] for skip in reader.skips] == [
        "line 4: 2 cells for 3 columns; the columns are id, text, metadata",
        'line 5: "metadata" is text but not JSON: unexpected character, expected a string key',
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,text,id\n1,x,2\n", "the column 'id' is there twice"),
        ('"id,text\n' + "x\n" * 4000, "no first row of CSV"),
        ('id,text\n1,"open\n2,tea\n', "line 2: a quote is opened and never closed"),
        ('id,text\n1,x\n2,"', "line 3: a quote is opened and never closed"),
        ("id,text\n1," + "x" * 5000 + "\n", "line 2: no row of CSV|longer than 4096"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        read(tmp_path / "x.csv", content, line_bytes=4096)


def test_a_quote_that_is_never_closed_takes_bounded_memory(tmp_path: Path) -> None:
    content = 'id,text\na,"open\n' + "b,line\n" * 5000
    reader_options: dict[str, Any] = {"on_error": "skip", "line_bytes": 4096}
    found = read(tmp_path / "x.csv", content, **reader_options)
    assert all(document.id == "b" for document in found)


def test_names_may_be_given_where_the_first_row_has_none(tmp_path: Path) -> None:
    named = read(tmp_path / "x.csv", "1,tea\n2,water\n", reading=Reading(names=("id", "text")))
    assert [(one.id, one.text) for one in named] == [("1", "tea"), ("2", "water")]
    with pytest.raises(SourceError, match="line 1: 2 cells for 1 columns; the columns are id"):
        read(tmp_path / "x.csv", "1,tea\n", reading=Reading(ColumnChoice(text="id"), names=("id",)))
    with pytest.raises(SourceError, match="the column 'id' is there twice"):
        read(tmp_path / "x.csv", "1,tea\n", reading=Reading(names=("id", "id")))
    with pytest.raises(SourceError, match="--columns goes with CSV and TSV"):
        read(tmp_path / "x.jsonl", '{"id": 1, "text": "x"}\n', reading=Reading(names=("id", "text")))


def test_row_numbers_without_a_name_are_metadata(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "x.csv", ",id,text\n0,a,x\n")
    assert found.metadata == {"column 1": "0"}
    reading = Reading(ColumnChoice(not_metadata=("column 1",)))
    (found,) = read(tmp_path / "x.csv", ",id,text\n0,a,x\n", reading=reading)
    assert found.metadata == {}


@pytest.mark.parametrize("row", ["1,Hot tea.,2001", f"a,b,{'long ' * 10}", "4,x,4"])
def test_a_first_row_that_seems_to_be_values_is_told(tmp_path: Path, row: str) -> None:
    """Where columns are not found, or are there twice; not where names are given, or seem to be names."""
    path = tmp_path / "x.csv"
    path.write_text(f"{row}\n{row}\n")
    hint = r"If the first row holds no names, give them with --columns NAME,NAME,…$"
    with pytest.raises(SourceError, match=hint):
        list(DocumentReader(path))
    path.write_text(f"key,words\n{row}\n")
    with pytest.raises(SourceError, match=r"the columns are key, words$"):
        list(DocumentReader(path))
    path.write_text(f"{row}\n{row}\n")
    given = Reading(ColumnChoice(generate_ids=True), names=("1", "text", "2"))
    assert len(list(DocumentReader(path, on_error="skip", reading=given))) == 1
    with pytest.raises(SourceError, match=r"the columns are 1, x, 2: name one with --text-field$"):
        list(DocumentReader(path, reading=Reading(ColumnChoice(generate_ids=True), names=("1", "x", "2"))))


@pytest.mark.parametrize(
    ("rows", "encoding", "found"),
    [
        (["他把热水倒进茶壶里，等了三分钟。", "昨天下午我们去山上采茶。"], "gbk", "gb18030"),
        (["他把熱水倒進茶壺裡，等了三分鐘。", "昨天下午我們去山上採茶。"], "big5", "big5"),
        (["急須にお湯を注いで三分待ちます。", "この店のお茶は香りがいいです。"], "shift_jis", "cp932"),
        (["찻주전자에 뜨거운 물을 붓고 기다립니다.", "이 가게의 녹차는 향이 좋습니다."], "euc_kr", "cp949"),
        (["Чай уже готов и налит в чашку.", "Вода кипит в чайнике."], "cp1251", "cp1251"),
        (["急須にお湯を注いで三分待ちます。"], "iso2022_jp", "iso2022_jp"),
        (["The café."], "utf-8", "utf-8"),
    ],
)
def test_the_lines_that_tell_the_encoding_may_come_late(
    tmp_path: Path, rows: list[str], encoding: str, found: str
) -> None:
    """Within the first MiB, and of one file behind it."""
    before = 40_000 if encoding == "gbk" else 3000
    plain = "".join(f"{n},The kettle boils for cup {n}.\n" for n in range(before))
    late = "".join(f"x{n},{rows[n % len(rows)]}\n" for n in range(20))
    path = tmp_path / "x.csv"
    path.write_bytes(f"id,text\n{plain}{late}".encode(encoding))
    reader = DocumentReader(path)
    documents = list(reader)
    assert [document.text for document in documents[before:]] == [rows[n % len(rows)] for n in range(20)]
    assert reader.encoding == found


def test_a_bad_byte_late_in_utf_8_is_an_error_in_it(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,text\n" + "".join(f"{n},시간\n" for n in range(50)).encode() + b"x,caf\xe9\n")
    with pytest.raises(SourceError, match=r"x\.csv line \d+ or later: a byte 0xe9 is no utf-8"):
        list(DocumentReader(path))


def test_the_encoding_is_looked_for_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,text\n" + b"1," + b"tea " * 4_000_000 + "차".encode("cp949"))
    tracemalloc.start()
    try:
        with path.open("rb") as file:
            encoding_of(file)
        assert tracemalloc.get_traced_memory()[1] < 2**23 < path.stat().st_size
    finally:
        tracemalloc.stop()
