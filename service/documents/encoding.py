"""Documents to representations: as they are, or in windows, exactly as builds encode them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.document_windows import EncodedText, cutter_for, encoded_texts, windows_of
from tercet.ingest.errors import SourceError
from tercet.models.representations import Int64, Representations
from tercet.models.texts.blank import without_blank
from tercet.models.texts.windows import WindowCutter
from tercet.service.documents.batch import EncodedDocuments, stored_outputs
from tercet.service.encoding.options import TextOptions
from tercet.service.encoding.service import EncodingService
from tercet.service.encoding.slices import encode_slices
from tercet.service.load.admission import Ticket
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pool

REMEDY = "(setting max_write_tokens): write fewer documents at a time"


async def encode_documents(
    documents: Sequence[Document],
    positions: Int64,
    settings: CollectionSettings,
    encoding: EncodingService,
    pool: Pool,
    *,
    write_tokens: int,
    deadline: Deadline,
) -> EncodedDocuments:
    """Representations of the documents at some positions of a batch, at least one.

    They wait in the encoder's line as the texts of `/embed` do. pool: for what takes longer than a moment.
    Raises RequestTooLargeError for more than `write_tokens`, UnsupportedWindowError, InvalidDocumentError for
    a character that fits no window, and what `EncodingService.encode` raises.
    """
    cutter = cutter_for(settings, encoding.tokenizer)
    chosen = [documents[position] for position in positions.tolist()]
    windows: list[EncodedText] = []
    if cutter is not None:
        windows = await pool.run(_windows, chosen, cutter)
    texts = [window.text for window in windows] or [document.encoded_text for document in chosen]
    order = np.argsort([len(text) for text in texts], kind="stable")  # slices of like length pad little
    slices = encode_slices(
        encoding,
        pool,
        [texts[row] for row in order.tolist()],
        TextOptions(outputs=stored_outputs(settings), adapter=settings.adapter),
        request_tokens=write_tokens,
        remedy=REMEDY,
        ticket=Ticket(deadline),
    )
    async with aclosing(slices):
        parts = [part async for part in slices]
    encoded = await pool.run(_in_order, parts, order) if len(parts) > 1 else _in_order(parts, order)
    encoded = without_blank(encoding.tokenizer, texts, encoded)
    if cutter is None:
        return EncodedDocuments.whole(positions, documents, encoded)
    _, divided = windows_of(windows)
    return EncodedDocuments(positions, encoded, divided.offsets, np.asarray(divided.spans))


def _in_order(parts: Sequence[Representations], order: Int64) -> Representations:
    return Representations.concatenate(parts).take(np.argsort(order, kind="stable"))


def _windows(documents: Sequence[Document], cutter: WindowCutter) -> list[EncodedText]:
    try:
        return [window for document in documents for window in encoded_texts(document, cutter)]
    except SourceError as error:
        raise InvalidDocumentError(str(error)) from error
