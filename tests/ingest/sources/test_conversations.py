"""Conversations: what was said in their turns, with tools, pictures and silence among them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.ingest.errors import SourceError
from tercet.ingest.sources.columns import ColumnChoice
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading

CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"}]}
PICTURE = {"type": "image_url", "image_url": {"url": "data:"}}


def reader(folder: Path, *conversations: Any, key: str = "messages", **reading: Any) -> DocumentReader:
    path = folder / "chats.jsonl"
    path.write_text("\n".join(json.dumps({key: turns}) for turns in conversations))
    return DocumentReader(path, reading=Reading(ColumnChoice(generate_ids=True)), **reading)


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        ([{"content": "Is it hot?"}, CALL, {"role": "tool", "content": "96"}], "Is it hot?\n\n96"),
        ([{"content": "Is it hot?"}, {"role": "assistant"}, {"content": " "}], "Is it hot?"),
        ([{"content": [{"type": "text", "text": "Is it"}, PICTURE, "hot?"]}], "Is it\n\nhot?"),
        ([{"content": [{"text": "Yes."}]}, {"content": [PICTURE]}], "Yes."),
    ],
)
def test_what_was_said(tmp_path: Path, turns: Any, text: str) -> None:
    assert [document.text for document in reader(tmp_path, turns)] == [text]


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        (
            [{"content": "x"}, {"content": 5}],
            '"content" of turn 2 of "messages" must be a string, null or a list of parts, got a number',
        ),
        ([{"content": "x"}, "y"], 'turn 2 of "messages" must be an object, got a string'),
        ([{"content": ["x", 1]}], 'part 2 of "content" of turn 1 of "messages" must be an object, got a num'),
        ([{"content": [{"type": "text", "text": 1}]}], '"text" of part 1 of "content" of turn 1 of "messa'),
        ([CALL, CALL], 'no turn of "messages" has text in "content"'),
        ([], 'no turn of "messages" has text in "content"'),
        ("x", '"messages" must be a list of turns, got a string'),
        (None, '"messages.content" is missing'),
    ],
)
def test_what_is_wrong_names_the_turn(tmp_path: Path, turns: Any, said: str) -> None:
    with pytest.raises(SourceError, match=f"line 2: {said}"):
        list(reader(tmp_path, [{"content": "tea"}], turns))


def test_where_all_are_left_out_the_first_reason_is_told(tmp_path: Path) -> None:
    read = reader(tmp_path, [CALL], [{"content": 5}], on_error="skip")
    assert not list(read)
    assert str(read.no_documents()).startswith(
        f"{tmp_path / 'chats.jsonl'}: no documents (2 records skipped; the first: {tmp_path / 'chats.jsonl'} "
        'line 1: no turn of "messages" has text in "content"); nothing was written.'
    )


def test_null_in_a_list_on_any_path_counts_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"id": "a", "turns": [{"said": "tea"}, {"said": None}, {}, {"said": "hot"}]}))
    (found,) = DocumentReader(path, reading=Reading(ColumnChoice(text="turns.said")))
    assert found.text == "tea\n\nhot"
