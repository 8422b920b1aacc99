"""What the one object of a JSON file is: a document of its own, or what holds the list of the records."""

from __future__ import annotations

from pathlib import Path

from tercet.ingest.errors import SourceError
from tercet.ingest.sources.conversations import CONVERSATIONS, SPEAKERS
from tercet.ingest.sources.json_elements import JsonElements
from tercet.ingest.sources.unclear_columns import SHOWN_CHARACTERS
from tercet.ingest.sources.usual_names import TEXTS, usual_names

_DEEPEST = 16  # levels of objects within objects, in which lists are looked for
_SHOWN = 20


class ObjectOutline:
    """Whether an object has a text of its own, and which lists of objects are in it, within objects, too.

    keys: the first ones; lists: the keys that lead to each, the first ones, and `several` of them.
    """

    def __init__(self, text: str | None) -> None:
        """text: path of the texts, where somebody says it; else a text is what has a usual name."""
        self.is_document = False
        self.keys: list[str] = []
        self.lists: list[tuple[str, ...]] = []
        self._text = text
        self._with_text: str | None = None  # path of a text in one of the lists

    def read(self, elements: JsonElements, within: tuple[str, ...] = ()) -> None:
        """Goes through the object that was just gone into, or until a text of its own is there.

        within: the keys that lead to it. Raises BrokenJsonError.
        """
        for member in elements.members():
            path = (*within, member.key)
            if not within and len(self.keys) < _SHOWN:
                self.keys.append(member.key)
            if not within and self._leads_on(member.key, member.begin):
                self.is_document = True
            elif member.begin == b"{" and len(path) < _DEEPEST:
                self.read(elements, path)
            elif member.begin == b"[":
                self._read_list(elements, path)
            elif not within and member.begin == b'"':
                self.is_document = self._is_text(member.key)
            if self.is_document:
                return

    def records(self, path: Path) -> tuple[str, ...] | None:
        """The keys that lead to the records; None where the object itself is one.

        path: of the file. Raises SourceError where it is unclear.
        """
        if self.is_document:
            return None
        if not self.lists:
            keys = f"; its keys are {', '.join(self.keys)}"[:SHOWN_CHARACTERS] if self.keys else ""
            raise SourceError(
                f"{path}: no array of objects is in it{keys}; give one, or an object on each line (JSONL), "
                "in UTF-8, or name the text of a single document with --text-field"
            )
        if len(self.lists) > 1:
            lists = ", ".join(map(".".join, self.lists))[:SHOWN_CHARACTERS]
            text = "" if self._with_text is None else f", such as {self._with_text:.200}"
            raise SourceError(
                f"{path}: several lists of objects are in it ({lists}): name the one of the records with "
                f"--records, or the text with --text-field{text}, where all of it is one document"
            )
        return self.lists[0]

    def _read_list(self, elements: JsonElements, path: tuple[str, ...]) -> None:
        first = elements.first()
        if first == b'"' and len(path) == 1:
            self.is_document = self._is_text(path[0])
        elif first == b"{":
            names = [member.key for member in elements.members()]
            if self._text is None and len(path) == 1 and _is_conversation(path[0], names):
                self.is_document = True
            if len(self.lists) < _SHOWN:
                self.lists.append(path)
            texts = usual_names(names, TEXTS)
            if texts and self._with_text is None:
                self._with_text = ".".join((*path, texts[0]))

    def _is_text(self, key: str) -> bool:
        return bool(usual_names([key], TEXTS)) if self._text is None else key == self._text

    def _leads_on(self, key: str, begin: bytes) -> bool:
        """Whether the path of the text goes on within a member."""
        return self._text is not None and begin in (b"{", b"[") and self._text.startswith(f"{key}.")


def _is_conversation(key: str, names: list[str]) -> bool:
    """Whether a list under this key, whose first element has these, is of what was said by whom."""
    if key not in CONVERSATIONS:
        return False
    said = CONVERSATIONS[key].partition(".")[2]
    return said in names and SPEAKERS[key] in names
