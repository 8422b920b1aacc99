"""The text of a conversation: what was said in its turns, which is text or a list of parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.sources.json_kinds import kind_of

# The column of the turns, and where in it the texts are.
CONVERSATIONS = {"messages": "messages.content", "conversations": "conversations.value"}
# And what of a turn tells who said it.
SPEAKERS = {"messages": "role", "conversations": "from"}


def said(record: Mapping[str, Any], path: str) -> str | None:
    """The texts of all turns, as paragraphs; None where the record has no such column.

    A turn without content says nothing, as one that only calls tools. Of parts those of text count, not
    pictures and the like. path: one of CONVERSATIONS. Raises InvalidDocumentError naming the turn that has
    anything else, and where no turn says anything.
    """
    column, key = path.split(".")
    turns = record.get(column)
    if turns is None:
        return None
    if not isinstance(turns, list):
        raise InvalidDocumentError(f'"{column}" must be a list of turns, got {kind_of(turns)}')
    texts: list[str] = []
    for number, turn in enumerate(turns, start=1):
        where = f'turn {number} of "{column}"'
        if not isinstance(turn, Mapping):
            raise InvalidDocumentError(f"{where} must be an object, got {kind_of(turn)}")
        content = turn.get(key)
        if isinstance(content, str):
            texts.append(content)
        elif isinstance(content, list):
            texts += _texts_of(content, f'"{key}" of {where}')
        elif content is not None:
            raise InvalidDocumentError(
                f'"{key}" of {where} must be a string, null or a list of parts, got {kind_of(content)}'
            )
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise InvalidDocumentError(f'no turn of "{column}" has text in "{key}"')
    return "\n\n".join(texts)


def _texts_of(parts: Sequence[Any], where: str) -> Iterator[str]:
    for number, part in enumerate(parts, start=1):
        if isinstance(part, str):
            yield part
        elif not isinstance(part, Mapping):
            raise InvalidDocumentError(f"part {number} of {where} must be an object, got {kind_of(part)}")
        elif part.get("type", "text") == "text":
            text = part.get("text")
            if not isinstance(text, str):
                raise InvalidDocumentError(
                    f'"text" of part {number} of {where} must be a string, got {kind_of(text)}'
                )
            yield text
