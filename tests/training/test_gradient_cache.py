"""Cached gradients equal those of one graph over the whole batch, through a real encoder with its heads."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.representations import TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.training.gradient_cache import cached_backward, random_state
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.m3.losses import total_loss
from tercet.training.m3.scores import side_scores
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.objective import LossSettings

QUERIES = ["word1 word2", "word3 word9 word4", "word7"]
PASSAGES = [
    "word1 word2 word5 word6",
    "word9 word3",
    "word7 word8 word1 word4 word11 word12",
    "word20 word21 word1",
    "word3",
]
SUB_BATCH_TOKENS = 12


@pytest.fixture(params=["cls", "mean", "mcls"])
def encoder(request: pytest.FixtureRequest, base_folder: Path, tokenizer: Tokenizer) -> TextEncoder:
    """The tiny BERT with dropout and random heads, in training mode; with MCLS a CLS every fourth token."""
    torch.set_num_threads(1)
    mcls = request.param == "mcls"
    settings = EncodingSettings(
        pooling="cls" if mcls else request.param, max_length=32, mcls_every=4 if mcls else None
    )
    torch.manual_seed(3)
    model = EncoderModel(load_body(base_folder), Heads(16, 8, settings)).train()
    with torch.no_grad():
        model.heads.sparse.bias.fill_(1.0)  # no weight is cut off at 0
    assert model.body.config.hidden_dropout_prob > 0  # type: ignore[union-attr]
    tokenizer = Tokenizer.load(base_folder, settings)
    return TextEncoder(model, tokenizer, SUB_BATCH_TOKENS, "float32", "cpu")


def parts(encoder: TextEncoder) -> tuple[list[TokenBatch], Tensor, list[TokenBatch], Tensor]:
    tokenizer = encoder.tokenizer
    queries, query_order = encoder.parts(tokenizer.tokenize(QUERIES, "query"))
    passages, passage_order = encoder.parts(tokenizer.tokenize(PASSAGES, "document"))
    assert len(queries) > 1
    assert len(passages) > 2
    return queries, query_order, passages, passage_order


def loss_of(encoder: TextEncoder, encoded: list[EncodedTexts]) -> Tensor:
    queries, query_order, _, passage_order = parts(encoder)
    found = side_scores(
        EncodedTexts.concatenate(encoded[: len(queries)], query_order),
        EncodedTexts.concatenate(encoded[len(queries) :], passage_order),
    )
    allowed = torch.ones(3, 5, dtype=torch.bool)
    allowed[0, 3] = False
    settings = LossSettings(form="revised", temperature=0.1, sparse=1.0)
    return total_loss(found, torch.tensor([0, 1, 2]), allowed, settings)[0]


def gradients(encoder: TextEncoder) -> dict[str, Tensor]:
    found = {name: p.grad.clone() for name, p in encoder.model.named_parameters() if p.grad is not None}
    encoder.model.zero_grad()
    return found


def test_gradients_equal_those_of_one_graph_with_dropout(encoder: TextEncoder) -> None:
    queries, _, passages, _ = parts(encoder)
    every = [*queries, *passages]
    torch.manual_seed(9)
    loss = loss_of(encoder, [encoder.encode(part) for part in every])
    loss.backward()  # type: ignore[no-untyped-call]
    state = random_state()[0]
    whole = gradients(encoder)
    assert {"heads.sparse.weight", "heads.colbert.weight", "heads.colbert.bias"} <= set(whole)
    assert all(whole[name].abs().max() > 1e-4 for name in whole if "attention.self.key.bias" not in name)

    torch.manual_seed(9)
    losses = []

    def cached_loss(encoded: list[EncodedTexts]) -> Tensor:
        losses.append(loss_of(encoder, encoded))
        return losses[0]

    cached_backward(every, encoder.encode, cached_loss)
    assert losses[0].item() == loss.item()
    # What comes next draws the same random numbers either way.
    assert torch.equal(random_state()[0], state)
    cached = gradients(encoder)
    assert set(cached) == set(whole)
    for name, gradient in whole.items():
        torch.testing.assert_close(cached[name], gradient, rtol=1e-5, atol=1e-5)


def test_sub_batches_equal_one_batch_without_dropout(encoder: TextEncoder) -> None:
    encoder.model.eval()
    queries, _, passages, _ = parts(encoder)
    cached_backward([*queries, *passages], encoder.encode, lambda encoded: loss_of(encoder, encoded))
    cached = gradients(encoder)
    batches = encoder.tokenizer.tokenize(QUERIES, "query"), encoder.tokenizer.tokenize(PASSAGES, "document")
    found = side_scores(*(encoder.encode(batch) for batch in batches))
    allowed = torch.ones(3, 5, dtype=torch.bool)
    allowed[0, 3] = False
    settings = LossSettings(form="revised", temperature=0.1, sparse=1.0)
    loss, _ = total_loss(found, torch.tensor([0, 1, 2]), allowed, settings)
    loss.backward()  # type: ignore[no-untyped-call]
    whole = gradients(encoder)
    assert set(cached) == set(whole)
    for name, gradient in whole.items():
        torch.testing.assert_close(cached[name], gradient, rtol=1e-5, atol=1e-5)


class Kept(torch.autograd.Function):
    """Passes states on; what it saves lives as long as the graph."""

    @staticmethod
    def forward(context: torch.autograd.function.FunctionCtx, states: Tensor) -> Tensor:
        kept = states.clone()
        context.save_for_backward(kept)
        LIVE.append(weakref.ref(kept))
        return states.clone()

    @staticmethod
    def backward(context: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> Tensor:
        (_,) = context.saved_tensors  # type: ignore[attr-defined]
        return gradients[0]


LIVE: list[weakref.ref[Tensor]] = []


@pytest.mark.parametrize("encoder", ["mean"], indirect=True)
def test_memory_holds_the_graph_of_one_sub_batch(encoder: TextEncoder) -> None:
    most = 0

    def watch(module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        nonlocal most
        kept: Tensor = Kept.apply(output)  # type: ignore[no-untyped-call]
        most = max(most, sum(reference() is not None for reference in LIVE))
        return kept

    embeddings = encoder.model.body.embeddings
    assert isinstance(embeddings, torch.nn.Module)
    embeddings.register_forward_hook(watch)
    queries, _, passages, _ = parts(encoder)
    every = [*queries, *passages]
    LIVE.clear()
    cached_backward(every, encoder.encode, lambda encoded: loss_of(encoder, encoded))
    assert len(LIVE) == 2 * len(every)
    assert most <= 2  # the one being made, and what is left of the one before

    LIVE.clear()
    most = 0
    loss_of(encoder, [encoder.encode(part) for part in every])
    assert most == len(every)
