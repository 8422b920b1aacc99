"""Documents encoded and written: texts are encoded while earlier ones are written.

What is encoded are documents, or their windows in a collection with them. Memory is bounded by what
`tercet.models.stream` holds of these, where a long document's windows go on in the next part, and by
HELD_BYTES of documents: their metadata may be far longer than their texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain

import numpy as np
import numpy.typing as npt

from tercet.index.candidates import Document
from tercet.index.writer import SnapshotWriter
from tercet.ingest.document_bytes import document_bytes
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.document_windows import EncodedText, encoded_texts, windows_of
from tercet.models.representations import Representations
from tercet.models.stream import Known
from tercet.models.texts.blank import without_blank
from tercet.models.texts.windows import WindowCutter

HELD_BYTES = 2**25  # of documents that are read and not written; then no more is read until they are


class EncodedDocuments:
    """Encodes documents and adds them to a writer, and counts.

    read, encoded: texts so far: windows, or documents where nothing cuts them; documents: whose last text is
    encoded; truncated: texts that are longer than the encoder's limit.
    """

    def __init__(
        self,
        encoder: DocumentEncoder,
        cutter: WindowCutter | None,
        writer: SnapshotWriter,
        known: Known = lambda _: None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        """known: what a text was encoded to already; watch: is called as texts are encoded, and may raise."""
        self._encoder = encoder
        self._cutter = cutter
        self._writer = writer
        self._known = known
        self._watched = watch
        self._waiting: deque[EncodedText] = deque()  # read, and not written yet
        self._sizes: deque[int] = deque()  # of their documents, in bytes
        self._held_bytes = 0
        self._written = self._begun = 0  # texts, all and those before what is encoded now
        self.read = self.encoded = self.documents = self.tokens = self.truncated = 0

    def write(self, documents: Iterable[Document]) -> None:
        """Encodes and writes the documents. Raises what encoder and writer raise, and SourceError."""
        texts = self._texts(documents)
        for first in texts:
            self._begun = self._written
            run = chain([first], self._fitting(texts))
            with closing(self._encoder.encode_stream(run, self._known, self._watch)) as stream:
                for encoded in stream:
                    self._write([self._waiting.popleft() for _ in range(len(encoded))], encoded)

    def _fitting(self, texts: Iterator[str]) -> Iterator[str]:
        """The next texts, until too much of their documents waits to be written."""
        while self._held_bytes < HELD_BYTES and (text := next(texts, None)) is not None:
            yield text

    def _texts(self, documents: Iterable[Document]) -> Iterator[str]:
        for document in documents:
            self._sizes.append(document_bytes(document))
            self._held_bytes += self._sizes[-1]
            for encoded in encoded_texts(document, self._cutter):
                self._waiting.append(encoded)
                self.read += 1
                yield encoded.text

    def _watch(self, positions: npt.NDArray[np.int64], part: Representations) -> None:
        self.encoded += len(part)
        rows = (positions + self._begun - self._written).tolist()
        self.documents += sum(self._waiting[row].last for row in rows)
        self.tokens += int(part.tokens.sum())
        self.truncated += int(part.truncated.sum())
        self._watched()

    def _write(self, texts: list[EncodedText], encoded: Representations) -> None:
        self._written += len(texts)
        self._held_bytes -= sum(self._sizes.popleft() for text in texts if text.last)
        encoded = without_blank(self._encoder.tokenizer, [text.text for text in texts], encoded)
        documents, windows = windows_of(texts)
        self._writer.add(documents, encoded, None if self._cutter is None else windows)
