"""coCondenser's loss against two loops, and spans of documents."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tercet.models.representations import TokenBatch, offsets_of
from tercet.training.errors import TrainingDataError
from tercet.training.pretraining.span_contrast import sample_spans, span_contrastive_loss

FIRST, LAST = 101, 102


def documents(*lengths: int) -> TokenBatch:
    """Documents of so much content; the content is numbered from 1000 · its row on."""
    rows = [[FIRST, *range(1000 * row, 1000 * row + n), LAST] for row, n in enumerate(lengths, 1)]
    return TokenBatch(
        np.concatenate(rows).astype(np.int32),
        offsets_of(np.array([len(row) for row in rows])),
        np.zeros(len(rows), np.bool_),
    )


def spans_of(batch: TokenBatch) -> list[list[int]]:
    return [
        batch.token_ids[start:stop].tolist()
        for start, stop in zip(batch.offsets, batch.offsets[1:], strict=False)
    ]


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_the_loss_equals_two_loops(normalize: bool, temperature: float) -> None:
    torch.manual_seed(1)
    embeddings = torch.randn(6, 4)
    vectors = [v / v.norm() if normalize else v for v in embeddings]
    total = 0.0
    for i in range(6):
        partner = i + 1 if i % 2 == 0 else i - 1
        scores = {j: math.exp(float(vectors[i] @ vectors[j]) / temperature) for j in range(6) if j != i}
        total -= math.log(scores[partner] / sum(scores.values()))
    loss = span_contrastive_loss(embeddings, temperature=temperature, normalize=normalize)
    assert loss.item() == pytest.approx(total / 6, rel=1e-5)


def test_one_document_alone_has_nothing_to_tell_apart() -> None:
    assert span_contrastive_loss(torch.randn(2, 4)).item() == 0


def test_an_odd_number_of_spans_is_named() -> None:
    with pytest.raises(ValueError, match="3 spans"):
        span_contrastive_loss(torch.randn(3, 4))


def test_spans_are_pieces_of_their_document_that_do_not_overlap() -> None:
    given = documents(100, 20, 5, 2)
    for seed in range(100):
        spans = sample_spans(given, 12, np.random.default_rng(seed))
        pieces = spans_of(spans)
        assert [len(piece) for piece in pieces] == [12, 12, 12, 12, 4, 4, 3, 3]
        for row in range(4):
            one, other = (piece[1:-1] for piece in pieces[2 * row : 2 * row + 2])
            assert all(piece[0] == FIRST and piece[-1] == LAST for piece in pieces)
            assert all(np.diff(content).tolist() == [1] * (len(content) - 1) for content in (one, other))
            assert 1000 * (row + 1) <= one[0]
            assert one[-1] < other[0]
            assert other[-1] < 1000 * (row + 1) + given.lengths[row] - 2
        assert spans.truncated.tolist() == [True, True, False, False, True, True, False, False]


def test_spans_begin_anywhere() -> None:
    pairs = set()
    for seed in range(300):
        one, other = spans_of(sample_spans(documents(8), 4, np.random.default_rng(seed)))
        pairs.add((one[1], other[1]))
    # Two spans of two tokens in eight: 5 + 4 + 3 + 2 + 1 ways.
    assert len(pairs) == 15


def test_the_generator_decides() -> None:
    one, same, other = (
        sample_spans(documents(90), 10, np.random.default_rng(seed)).token_ids.tolist() for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_document_too_short_for_two_spans_is_named() -> None:
    with pytest.raises(TrainingDataError, match="document 1 has 1 tokens of content"):
        sample_spans(documents(5, 1), 10, np.random.default_rng(0))


def test_spans_without_room_are_named() -> None:
    with pytest.raises(ValueError, match="span_tokens is 2"):
        sample_spans(documents(5), 2, np.random.default_rng(0))
