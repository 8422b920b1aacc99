"""One file of text as a record of a source, and what version of it that is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tercet.index.errors import InvalidDocumentError
from tercet.index.wording import reason_of, shown
from tercet.ingest.passages.outline import Outline
from tercet.ingest.passages.split import SOURCE
from tercet.ingest.sources.encodings import SAMPLE_BYTES, detected_encoding
from tercet.ingest.texts.files import MARKDOWN, TextFile
from tercet.ingest.texts.mail import subject_of
from tercet.ingest.texts.mdx import without_modules
from tercet.ingest.texts.parsed import ParsedText, UnreadableFileError
from tercet.ingest.texts.parser import PARSED, FileParser
from tercet.ingest.texts.record import EmptyFileError, LeftOutError, TextRecord
from tercet.ingest.texts.rst import rst_headings

_DATA = re.compile(r"(\bdata:[\w.+-]+/[\w.+-]+;base64,)[A-Za-z0-9+/=]{40,}")  # a picture within the text
COLUMNS = ("id", "title", "text", "metadata")


@dataclass(frozen=True, slots=True)
class TextReader:
    """parser: for HTML and PDF; limit_bytes: of a file's text; encoding: of all, by default found."""

    parser: FileParser
    limit_bytes: int
    encoding: str | None = None

    def record(self, file: TextFile) -> TextRecord | InvalidDocumentError:
        """The record of a file, or why there is none: LeftOutError, EmptyFileError, or what is wrong."""
        if file.unlisted:
            return InvalidDocumentError(f"cannot be read ({file.left_out})")
        if file.left_out is not None:
            return LeftOutError(f"left out: {file.left_out}")
        try:
            file.name.encode()
            parsed = self._parsed(file)
        except UnicodeEncodeError:
            return InvalidDocumentError("its name is no UTF-8 text: rename it")
        except UnreadableFileError as error:
            return InvalidDocumentError(str(error))
        except InvalidDocumentError as error:
            return error
        except OSError as error:
            return InvalidDocumentError(f"cannot be read ({reason_of(error)})")
        if not parsed.text.strip():
            return EmptyFileError("left out: there is no text in it")
        metadata = {**parsed.metadata, SOURCE: file.name}
        title = parsed.title or file.title
        record = TextRecord(id=file.name, title=title, text=parsed.text, metadata=metadata)
        record.outline, record.left_out = parsed.outline, parsed.left_out
        return record

    def _parsed(self, file: TextFile) -> ParsedText:
        if file.ending in PARSED:
            return self.parser.parse(file.path, self.encoding, file.read_as)
        text = self._text(file)
        if file.ending == ".rst":
            outline = Outline(rst_headings(text))
            return ParsedText(text, outline.title, {}, outline)
        if file.ending not in MARKDOWN:
            return ParsedText(text, subject_of(text))
        from tercet.ingest.texts.front_matter import parted
        from tercet.ingest.texts.markdown import headings_of

        front, text = parted(text)
        text = _DATA.sub(r"\1", without_modules(text, exports=file.ending == ".mdx"))
        metadata = {name: value for name, value in front.items() if name != "title"}
        outline = Outline(headings_of(text), markdown=True)
        return ParsedText(text, _title(front) or outline.title, metadata, outline)

    def _text(self, file: TextFile) -> str:
        """A file's text with line feeds. Raises UnreadableFileError and OSError."""
        with file.path.open("rb") as opened:
            content = opened.read(self.limit_bytes + 1)
        if len(content) > self.limit_bytes:
            raise UnreadableFileError(f"longer than {self.limit_bytes} bytes, the limit for one document")
        encoding = self.encoding or detected_encoding(content[:SAMPLE_BYTES])
        if b"\0" in content and not encoding.startswith(("utf-16", "utf-32")):
            raise UnreadableFileError("no text: it holds bytes of 0")
        try:
            text = content.decode(encoding)
        except LookupError as error:
            raise UnreadableFileError(f"the encoding {encoding!r:.80} is not known (--encoding)") from error
        except UnicodeError as error:
            raise UnreadableFileError(f"no text in {encoding} ({error}); name it with --encoding") from error
        return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _title(front: Mapping[str, Any]) -> str | None:
    title = front.get("title")
    if title is None or isinstance(title, list):
        return None
    return (title if isinstance(title, str) else shown(title)).strip() or None
