"""How a new collection stores token vectors, and its codebook, learned from some of the source's documents
before any is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from index.token_vectors.codebook import Codebook
from index.token_vectors.codebook_training import FEWEST_VECTORS, MOST_VECTORS, train_codebook
from index.token_vectors.codecs import RESIDUAL_BITS, TokenCodec
from ingest.document_encoders import DocumentEncoder
from ingest.errors import SourceError
from ingest.groups import estimated_tokens
from ingest.sources.reader import DocumentReader
from models.representations import Float32

DEFAULT: TokenCodec = "residual1"
WORTH_LEARNING = 20_000  # token vectors; of fewer a codebook knows little, and int8 takes few bytes
SHARE = 10  # one document of so many is drawn
ENOUGH_VECTORS = 100_000  # of a small source more documents are drawn, until they have so many
MOST_DOCUMENTS = 10_000
TEXTS_AT_ONCE = 64


def codec_settings(
    encoder: DocumentEncoder, source: Path, asked: TokenCodec | None, progress: Callable[[int], None]
) -> dict[str, Any]:
    """The settings `token_codec` and `codebook` of a new collection, where they are not those of any other.

    Without a codec that is asked for, a source of enough token vectors gets the smallest.
    progress: is told now and then how many token vectors there are to learn from, and may raise. Raises
    SourceError where what is asked for needs a codebook, and there are too few vectors to learn it from.
    """
    if asked is not None and asked not in RESIDUAL_BITS:
        return {"token_codec": asked}
    texts, seen = _drawn_texts(source)
    codec: TokenCodec = asked or DEFAULT
    if asked is None:
        vectors = sum(map(estimated_tokens, texts)) if encoder.info.colbert_dimension % 8 == 0 else 0
        if vectors < WORTH_LEARNING:
            return {}
    sample = _sample(encoder, texts, seen // SHARE, progress)
    if asked is None and len(sample) < WORTH_LEARNING:
        return {}
    if len(sample) < FEWEST_VECTORS or sample.shape[1] % 8:
        raise SourceError(
            f"{source} has {len(sample)} token vectors of {sample.shape[1]} values to learn a codebook "
            f"from, which takes {FEWEST_VECTORS} of a multiple of 8: choose --token-codec int8, or give more "
            "documents"
        )
    progress(len(sample))
    codebook: Codebook = train_codebook(sample, RESIDUAL_BITS[codec])
    return {"token_codec": codec, "codebook": codebook}


def _sample(
    encoder: DocumentEncoder, texts: list[str], wanted: int, progress: Callable[[int], None]
) -> Float32:
    """Token vectors float32[T, C] of the first texts: so many, and more where these have too few vectors."""
    parts = [np.empty((0, encoder.info.colbert_dimension), np.float32)]
    vectors = 0
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        if vectors >= (ENOUGH_VECTORS if first >= wanted else MOST_VECTORS):
            break
        progress(vectors)
        colbert = encoder.encode(texts[first : first + TEXTS_AT_ONCE]).colbert
        if colbert is not None:
            parts.append(colbert.vectors)
            vectors += len(colbert.vectors)
    return np.concatenate(parts)


def _drawn_texts(source: Path) -> tuple[list[str], int]:
    """Texts of documents, each as likely as any other, in random order; and how many the source has.

    A reservoir (Vitter 1985, algorithm R): memory holds no more than are drawn at most.
    """
    generator = np.random.default_rng(0)
    drawn: list[str] = []
    seen = 0
    for document in DocumentReader(source, on_error="skip"):
        seen += 1
        if len(drawn) < MOST_DOCUMENTS:
            drawn.append(document.encoded_text)
        elif (place := int(generator.integers(seen))) < MOST_DOCUMENTS:
            drawn[place] = document.encoded_text
    return [drawn[place] for place in generator.permutation(len(drawn)).tolist()], seen
