"""coCondenser's part about the corpus: two spans of one document are closer than those of others.

Gao & Callan 2022, arXiv 2108.05540, section 3.2.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tercet.models.representations import Int64, TokenBatch, offsets_of
from tercet.training.errors import TrainingDataError


def span_contrastive_loss(embeddings: Tensor, *, temperature: float = 1.0, normalize: bool = False) -> Tensor:
    """−log of the softmax that each span gives to the other span of its document, averaged; float32[].

    embeddings: float[2B, D], rows 2i and 2i + 1 being the spans of document i; a span competes with all
    others but itself. The paper takes the plain dot product of CLS states, without temperature.
    Raises ValueError for an odd number of rows.
    """
    if len(embeddings) % 2:
        raise ValueError(f"{len(embeddings)} spans; each document needs two, in adjacent rows")
    vectors = functional.normalize(embeddings.float(), dim=1) if normalize else embeddings.float()
    similarities = (vectors @ vectors.T / temperature).fill_diagonal_(float("-inf"))
    partners = torch.arange(len(vectors), device=vectors.device) ^ 1
    return functional.cross_entropy(similarities, partners)


def sample_spans(documents: TokenBatch, span_tokens: int, generator: np.random.Generator) -> TokenBatch:
    """Two spans of each document that do not overlap, at random places: rows 2i and 2i + 1 for document i.

    documents: each between one first and one last special token, as the tokenizers of BERT and XLM-RoBERTa
    frame a text; so is each span. span_tokens: most tokens of a span, special tokens included; a document
    with less content than two spans is divided between two halves. (The released code draws two of the
    pieces that a document was cut into beforehand; here spans begin anywhere.)
    Raises TrainingDataError for a document of fewer than two tokens of content, ValueError for spans that
    have no room for content.
    """
    if span_tokens < 3:
        raise ValueError(f"span_tokens is {span_tokens}; a span needs at least 3, two of them special tokens")
    content = documents.lengths - 2
    if (content < 2).any():
        row = int((content < 2).argmax())
        raise TrainingDataError(
            f"document {row} has {content[row]} tokens of content; two spans need at least 2, so leave it out"
        )
    lengths: Int64 = np.minimum(span_tokens - 2, content // 2)
    slack = content - 2 * lengths
    draws = generator.random((len(documents), 2))
    # Two places in the slack, in order; the second span starts a span's length after its place.
    shifts = np.sort((draws * (slack + 1)[:, None]).astype(np.int64), axis=1)
    starts = documents.offsets[:-1, None] + 1 + shifts + np.stack([np.zeros_like(lengths), lengths], axis=1)
    sizes, owner = np.repeat(lengths + 2, 2), np.repeat(np.arange(len(documents)), 2)
    offsets = offsets_of(sizes)
    # Each token's place in the documents: a span's, between the first and the last one of its document.
    indices = np.arange(offsets[-1]) + np.repeat(starts.ravel() - 1 - offsets[:-1], sizes)
    indices[offsets[:-1]] = documents.offsets[owner]
    indices[offsets[1:] - 1] = documents.offsets[owner + 1] - 1
    return TokenBatch(documents.token_ids[indices], offsets, np.repeat(content > 2 * lengths, 2))
