"""How a new collection stores token vectors, and its codebook, learned from some of the source's documents
before any is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

import numpy as np

from tercet.index.candidates import Document
from tercet.index.codebook import Codebook
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import FEWEST_VECTORS, MOST_VECTORS, train_codebook
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.document_windows import encoded_texts
from tercet.ingest.errors import SourceError
from tercet.ingest.progress import Phase
from tercet.ingest.representation_cache import RepresentationCache
from tercet.ingest.sources.checks import OnError
from tercet.ingest.sources.files import Source, shown
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading
from tercet.models.representations import Float32
from tercet.models.texts.windows import WindowCutter

SHARE = 10  # one document of so many is drawn
ENOUGH_VECTORS = 100_000  # of a small source more documents are drawn, until they have so many
MOST_DOCUMENTS = 10_000
TEXTS_AT_ONCE, TOKENS_AT_ONCE = 64, 65_536
CHARACTERS_PER_TOKEN = 16  # at most, but for rare texts, of which a little less is seen
DRAWN_CHARACTERS = 2**26
SAMPLE_BYTES, VALUE_BYTES = 2**29, 4
DOCUMENTS_PER_LOOK = 1_000  # between two questions whether to go on


def codec_settings(
    encoder: DocumentEncoder,
    cutter: WindowCutter | None,
    source: Source,
    requested: TokenCodec | None,
    on_error: OnError,
    reading: Reading,
    cache: RepresentationCache,
    progress: Callable[[Phase, float], None],
) -> dict[str, Any]:
    """The settings `token_codec` and `codebook` of a new collection, where they are not those of any other.

    cutter, on_error, reading: as for the build; cache: gets what is encoded, which the build need not encode
    again; progress: gets now and then a phase and the share of it that is done, and may raise.
    Raises SourceError for a bad record (with `on_error` "stop"), and where what is asked for needs a
    codebook, and there are too few vectors to learn it from, or the encoder has no token vectors.
    """
    if "colbert" not in encoder.info.sides:
        if requested not in (None, "none"):
            raise SourceError(
                f"{encoder.info.name} gives no token vectors, which token_codec {requested} would store; "
                "leave it out"
            )
        return {}
    if requested not in RESIDUAL_BITS:
        return {} if requested is None else {"token_codec": requested}
    documents = DocumentReader(source, on_error=on_error, reading=reading, tokenizer=encoder.tokenizer)
    texts, wanted = _drawn_texts(
        documents, cutter, encoder.info.max_length, lambda: progress("reading", documents.fraction)
    )
    sample = _sample(encoder, texts, wanted, cache, lambda share: progress("sampling", share))
    if len(sample) < FEWEST_VECTORS or sample.shape[1] % 8:
        raise SourceError(
            f"{shown(source)} has {len(sample)} token vectors of {sample.shape[1]} values to learn a "
            f"codebook from, which takes {FEWEST_VECTORS} of a multiple of 8: choose --token-codec int8, or "
            "give more documents"
        )
    codebook: Codebook = train_codebook(
        sample, RESIDUAL_BITS[requested], progress=lambda share: progress("learning", share)
    )
    return {"token_codec": requested, "codebook": codebook}


def _sample(
    encoder: DocumentEncoder,
    texts: list[str],
    wanted: int,
    cache: RepresentationCache,
    progress: Callable[[float], None],
) -> Float32:
    """Token vectors float32[T, C] of the first texts: so many, and more where these have too few vectors."""
    dimension = encoder.info.colbert_dimension
    parts = [np.empty((0, dimension), np.float32)]
    most = min(MOST_VECTORS, SAMPLE_BYTES // (VALUE_BYTES * max(1, dimension)))
    at_once = max(1, min(TEXTS_AT_ONCE, TOKENS_AT_ONCE // encoder.info.max_length))
    vectors, enough = 0, min(most, ENOUGH_VECTORS)
    for first in range(0, len(texts), at_once):
        if vectors >= (enough if first >= wanted else most):
            break
        progress(max(first / len(texts), min(first / max(1, wanted), vectors / enough), vectors / most))
        some = texts[first : first + at_once]
        encoded = encoder.encode(some)
        cache.keep(some, encoded)
        colbert = encoded.colbert
        if colbert is not None:
            parts.append(colbert.vectors)
            vectors += len(colbert.vectors)
    return np.concatenate(parts)


def _drawn_texts(
    documents: Iterable[Document],
    cutter: WindowCutter | None,
    max_length: int,
    progress: Callable[[], None],
) -> tuple[list[str], int]:
    """The beginnings of documents, each as likely as any other, in random order, as the build encodes them;
    and how many of these texts are a share of the source.

    A reservoir (Vitter 1985, algorithm R). Memory holds no more than are drawn at most, and of each no more
    than an encoder of so many tokens reads.
    """
    generator = np.random.default_rng(0)
    drawn: list[list[str]] = []
    seen, characters = 0, CHARACTERS_PER_TOKEN * max_length
    most = max(1, min(MOST_DOCUMENTS, DRAWN_CHARACTERS // characters))
    windows = 1 if cutter is None else max(1, max_length // cutter.tokens)

    def beginning(document: Document) -> list[str]:
        texts = islice(encoded_texts(document, cutter), windows)
        return [text.text[:characters] for text in texts]

    for document in documents:
        seen += 1
        if seen % DOCUMENTS_PER_LOOK == 0:
            progress()
        if len(drawn) < most:
            drawn.append(beginning(document))
        elif (row := int(generator.integers(seen))) < most:
            drawn[row] = beginning(document)
    order = generator.permutation(len(drawn)).tolist()
    return list(chain.from_iterable(drawn[row] for row in order)), seen // SHARE * windows
