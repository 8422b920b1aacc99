"""Documents encoded and written: texts are encoded while earlier ones are written.

What is encoded are documents, or their windows in a collection with them. Memory is bounded by what
`tercet.models.stream` holds of these, where a long document's windows go on in the next part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import numpy as np
import numpy.typing as npt

from tercet.index.candidates import Document
from tercet.index.writer import SnapshotWriter
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.document_windows import EncodedText, encoded_texts, windows_of
from tercet.models.representations import Representations
from tercet.models.stream import Known
from tercet.models.texts.blank import without_blank
from tercet.models.texts.windows import WindowCutter


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
        self._written = 0
        self.read = self.encoded = self.documents = self.tokens = self.truncated = 0

    def write(self, documents: Iterable[Document]) -> None:
        """Encodes and writes the documents. Raises what encoder and writer raise, and SourceError."""
        texts = self._texts(documents)
        with closing(self._encoder.encode_stream(texts, self._known, self._watch)) as stream:
            for encoded in stream:
                self._write([self._waiting.popleft() for _ in range(len(encoded))], encoded)

    def _texts(self, documents: Iterable[Document]) -> Iterator[str]:
        for document in documents:
            for encoded in encoded_texts(document, self._cutter):
                self._waiting.append(encoded)
                self.read += 1
                yield encoded.text

    def _watch(self, positions: npt.NDArray[np.int64], part: Representations) -> None:
        self.encoded += len(part)
        rows = (positions - self._written).tolist()
        self.documents += sum(self._waiting[row].last for row in rows)
        self.tokens += int(part.tokens.sum())
        self.truncated += int(part.truncated.sum())
        self._watched()

    def _write(self, texts: list[EncodedText], encoded: Representations) -> None:
        self._written += len(texts)
        encoded = without_blank(self._encoder.tokenizer, [text.text for text in texts], encoded)
        documents, windows = windows_of(texts)
        self._writer.add(documents, encoded, None if self._cutter is None else windows)
