"""Arrays of objects in JSON files: alone, within an object, long, with bad elements, broken."""

import io
import json
import re
import tracemalloc
from pathlib import Path

import pytest

from tercet.index.candidates import Document
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.json_elements import Element, JsonElements
from tercet.ingest.sources.reader import DocumentReader

TWO = [{"id": "a", "text": "one", "n": 1.5}, {"_id": 3, "text": "두 번째", "big": 2**60}]
EXPECTED = [Document("a", "one", None, {"n": 1.5}), Document("3", "두 번째", None, {"big": 2**60})]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(TWO),
        json.dumps({"posts": TWO}),
        json.dumps({"count": 2, "tags": [], "page": {"ids": [3, 4], "items": TWO}}),
        "\ufeff" + json.dumps(TWO, indent=2, ensure_ascii=False),
        json.dumps({"version": {"list": [1]}, "documents": TWO, "more": []}, indent=1),
        "\n".join(map(json.dumps, TWO)),  # JSONL by another name
    ],
)
def test_arrays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    assert list(DocumentReader(path)) == EXPECTED


def test_a_bad_object_is_named_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([TWO[0], 5, {"id": "c", "text": None}, TWO[1]]))
    with pytest.raises(
        SourceError, match=r"x\.json record 2 \(line 1, column 40\): expected a JSON object, got a number"
    ):
        list(DocumentReader(path))
    reader = DocumentReader(path, on_error="skip")
    assert list(reader) == EXPECTED
    assert (reader.skipped, reader.fraction) == (2, 1.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no valid JSON: the file ends too early, at line 1, column 1"),
        ("[", "no valid JSON after record 0: the file ends too early, at line 1, column 2"),
        (
            '[{"id": "a", "text": "x"},\n {"id"',
            "no valid JSON after record 1: the file ends too early, at line 2, column 7, in what begins at "
            "line 2, column 2",
        ),
        ('[{"id": "a", "text": "x}]', "the file ends too early, at line 1, column 26"),
        (
            '[{"id": "a", "text": "x"]',
            "line 1, column 25 has ] where } is due, in what begins at line 1, column 2",
        ),
        ('[{"id": "a", "text": "x"}}', "line 1, column 26 has } where ] is due"),
        (
            '[{"id": "a", "text": "x"}] 5',
            "no valid JSON after record 1: more follows its end at line 1, column 28",
        ),
        ('{"posts": [{"id": "a", "text": "x"}]', "no valid JSON: the file ends too early"),
        ('{"posts": ]', "no valid JSON: line 1, column 11 has ] where } is due"),
        ("[" * 70_000, "more than 65,536 brackets are open at line 1, column 65537"),
        ("{\n}", "no array of objects is in it"),
        ("7", "no array of objects is in it"),
        ('7 [{"id": "a", "text": "x"}]', "no array of objects is in it"),
        ('{\n"posts": [5, {"id": "a", "text": "x"}]}', "no array of objects is in it"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(SourceError, match=re.escape(said)):
        list(DocumentReader(path, on_error="skip"))


GOOD = [
    '{"id": "g1", "text": "one"}',
    '{"id": "g2", "text": "둘", "n": {"a": [1, {"b": []}]}}',
    '{"id": "g3", "text": "]"}',
]
BAD = {
    "NaN in metadata": '{"id": "b", "text": "x", "metadata": {"score": NaN}}',
    "NaN deep in a value": '{"id": "b", "text": "x", "a": [{"c": [1.5, NaN]}]}',
    "infinity": '{"id": "b", "text": "x", "n": -Infinity}',
    "NaN alone": "NaN",
    "infinity alone": "-Infinity",
    "a number too large": '{"id": "b", "text": "x", "n": 1e999}',
    "an integer too large": '{"id": "b", "text": "x", "n": 123456789012345678901}',
    "NaN beside half a character": '{"id": "b", "text": "\\ud800", "n": NaN}',
    "no UTF-8": '{"id": "b", "text": "\udcff"}',
    "a word": '{"id": "b", "text": tru}',
    "a zero before a number": '{"id": "b", "text": "x", "n": 01}',
    "a comma too many": '{"id": "b", "text": "x",}',
    "a control character": '{"id": "b", "text": "x\x00y"}',
    "two values": '{"id": "b", "text": "x"} {"id": "c", "text": "y"}',
    "brackets alone": "[" * 2000 + "]" * 2000,
    "a text": '"},{"',
    "too long": '{"id": "b", "text": "' + "x, \\u0041 [{" * 20_000 + '"}',
    "too long in brackets": '{"id": "b", "n": [' + "[1]," * 20_000 + "[]]}",
}
TAKEN = {
    "half a character": '{"id": "b", "text": "tea \\ud800", "n": "\\ude00"}',
    "a key twice": '{"id": "b", "text": "x", "n": 1, "n": 2, "metadata": {"k": 1, "k": 2}}',
    "escapes": '{"id": "b", "text": "\\"\\\\", "n": "\\\\\\"]}"}',
    "a number like no other": '{"id": "b", "text": "x", "n": 1e-999, "m": 18446744073709551615}',
}


@pytest.mark.parametrize("places", [(0,), (1,), (3,), (0, 1), (1, 2), (2, 4)])
@pytest.mark.parametrize("name", [*BAD, *TAKEN])
def test_an_element_is_read_as_a_line_is(tmp_path: Path, name: str, places: tuple[int, ...]) -> None:
    elements, element = list(GOOD), {**BAD, **TAKEN}[name]
    for place in places:
        elements.insert(place, element.replace('"b"', f'"b{place}"'))
    array, lines = tmp_path / "x.json", tmp_path / "x.jsonl"
    array.write_bytes(f"[{','.join(elements)}\n]".encode(errors="surrogateescape"))
    lines.write_bytes("\n".join(elements).encode(errors="surrogateescape"))
    read = DocumentReader(array, on_error="skip", line_bytes=2**16)
    expected = DocumentReader(lines, on_error="skip", line_bytes=2**16)
    assert list(read) == list(expected)
    assert [skip.reason for skip in read.skips] == [
        skip.reason.replace("of the line", "of the element") for skip in expected.skips
    ]
    assert read.skipped == (len(places) if name in BAD else 0)


def test_a_bad_element_is_named_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        '{"posts": [\n {"id": "a", "text": "차"},  {"id": "b",\n"text": NaN}, -Infinity,,\n5, "a\nb"]}'
    )
    reader = DocumentReader(path, on_error="skip")
    assert [document.id for document in reader] == ["a"]
    assert [str(skip).removeprefix(str(path)) for skip in reader.skips] == [
        ' record 2 (line 2, column 29): "text" is nan: JSON has no such number; use null',
        " record 3 (line 3, column 15): it is -inf: JSON has no such number; use null",
        " record 4 (line 3, column 25): not valid JSON: a comma has no value at one of its sides",
        " record 5 (line 4, column 1): expected a JSON object, got a number",
        " record 6 (line 4, column 4): not valid JSON at character 3 of the element: unexpected "
        "control character in string",
    ]
    with pytest.raises(SourceError, match=r'record 2 \(line 2, column 29\): "text" is nan'):
        list(DocumentReader(path))


def test_what_surrounds_the_array_need_not_be_finite(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'{{"took": NaN, "none": [], "posts": {json.dumps(TWO)}, "best": Infinity}}')
    assert list(DocumentReader(path)) == EXPECTED


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_nothing_depends_on_where_blocks_end(indent: int | None, ascii_only: bool) -> None:
    values = [
        {"a": '\\"]}[{,', "차": [[], {}, [{"b": "\\"}], 1.5e3]},
        [],
        {},
        "x,y",
        None,
        [[{"c": ["]"]}]],
        -1,
    ]
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    content = f'{{"a": "[{{", "b": {text}, "c": ["}}"]}}'.encode()
    whole = _elements(io.BytesIO(content))
    assert [json.loads(element.text or b"") for element in whole] == values
    for size in (1, 2, 3, 7, 30):
        assert _elements(_Dribble(content, size)) == whole


def _elements(file: io.BytesIO) -> list[Element]:
    elements = JsonElements(file, limit_bytes=1000)
    assert elements.enter(["b"]) == []
    read = list(elements)
    elements.leave()
    return read


class _Dribble(io.BytesIO):
    """Gives so many bytes at a time."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self._size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self._size)


@pytest.mark.slow
def test_an_element_of_any_length_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("w") as file:
        file.write('[{"id": "b", "text": "')
        for _ in range(64):
            file.write("tea [\\n" * 2**17)
        file.write('"}, {"id": "a", "text": "one", "n": 1.5}]')
    tracemalloc.start()
    try:
        reader = DocumentReader(path, on_error="skip", line_bytes=2**20)
        assert list(reader) == EXPECTED[:1]
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20 < path.stat().st_size
    finally:
        tracemalloc.stop()
    assert reader.skips[0].reason == "longer than 1048576 bytes, the limit for one document"


def test_a_long_array_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("w") as file:
        file.write("[" + ",".join(json.dumps({"id": str(n), "text": "tea " * 50}) for n in range(2000)) + "]")
    reader = DocumentReader(path)
    documents = iter(reader)
    next(documents)
    assert 0 < reader.fraction < 1
    assert len(list(documents)) == 1999
