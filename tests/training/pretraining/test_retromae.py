"""RetroMAE against loops over single positions, for both families and all poolings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.models.checkpoint import EncodingSettings, Pooling
from tercet.models.errors import UnsupportedError
from tercet.training.pretraining.masking import IGNORED, PaddedTexts
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary
from tercet.training.pretraining.mlm_head import MlmHead
from tercet.training.pretraining.retromae import (
    Decoding,
    RetroMae,
    RetroMaeInputs,
    draw_retromae_inputs,
)

CLS, SEP, MASK = 2, 3, 4
VOCABULARY = MaskingVocabulary.of_arrays(MASK, np.arange(40) < 5, np.zeros(40, np.bool_))
CONTENTS = [[10, 11, 12, 13, 14, 15, 16, 17], [20, 21, 22], [30, 31, 32, 33, 34]]
DECODINGS = get_args(Decoding)
POOLINGS = ("cls", "mean", "last")


def batch_of(body: Any, contents: list[list[int]]) -> PaddedTexts:
    rows = [[CLS, *content, SEP] for content in contents]
    length = max(map(len, rows))
    pad = body.config.pad_token_id
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    lengths = np.array([len(content) for content in contents])
    return PaddedTexts(ids, (ids != pad).long(), lengths, np.arange(len(contents)), lengths + 2)


def drawn(body: Any, contents: list[list[int]], decoding: Decoding, seed: int = 5) -> RetroMaeInputs:
    return draw_retromae_inputs(batch_of(body, contents), VOCABULARY, (seed, seed + 1), decoding=decoding)


def visible_in(inputs: RetroMaeInputs) -> Tensor | None:
    """What every position attends to in enhanced decoding, bool[B, L, L]."""
    whole = slice(0, inputs.decoder.ids.shape[1])
    return None if inputs.sample is None else inputs.sample.visible(whole)


def model_of(body: Any, pooling: Pooling = "cls", layers: int = 1) -> RetroMae:
    torch.manual_seed(11)
    settings = EncodingSettings(pooling=pooling)
    return RetroMae(body, MlmHead(body.config), settings, decoder_layers=layers).eval()


def attended_alone(layer: Any, query: Tensor, context: list[Tensor]) -> Tensor:
    """One query float[D] over the context it sees, head by head, from the layer's weights."""
    width = len(query) // layer.heads
    keys, values = layer.key(torch.stack(context)), layer.value(torch.stack(context))
    parts = []
    for head in range(layer.heads):
        span = slice(head * width, (head + 1) * width)
        logits = [float(layer.query(query)[span] @ key[span]) / math.sqrt(width) for key in keys]
        total = sum(map(math.exp, logits))
        parts.append(
            sum(math.exp(logit) / total * value[span] for logit, value in zip(logits, values, strict=True))
        )
    state = layer.attention_norm(query + layer.attention_output(torch.cat(parts)))
    inner = layer.contract(layer.activation(layer.expand(state)))
    result: Tensor = layer.output_norm(state + inner)
    return result


def seen_from(visible: Tensor | None, row: int, i: int, length: int) -> list[int]:
    """The positions that a position attends to."""
    return [j for j in range(length) if visible is None or visible[row, i, j]]


def loss_alone(model: Any, states: list[Tensor], labels: list[int]) -> float:
    """Mean of −log softmax at the label, token by token."""
    words = model.body.get_input_embeddings().weight
    losses = []
    for state, label in zip(states, labels, strict=True):
        logits = words @ model.head(state) + model.head.bias
        losses.append(-float(logits.log_softmax(0)[label]))
    return sum(losses) / len(losses)


def sentence(model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Embedding float[D] and last hidden states float[L, D] of one text without padding."""
    hidden = model.body(input_ids=ids.unsqueeze(0)).last_hidden_state[0]
    pooled = {"cls": hidden[0], "mean": hidden.mean(0), "last": hidden[-1]}
    return pooled[model.settings.pooling], hidden


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize("layers", [1, 3])
def test_losses_equal_a_loop_over_positions(
    tiny_body: Any, decoding: Decoding, pooling: Pooling, layers: int
) -> None:
    model = model_of(tiny_body, pooling, layers)
    inputs = drawn(tiny_body, CONTENTS, decoding)
    # RoBERTa's first token has position padding id + 1.
    first_position = 0 if tiny_body.config.model_type == "bert" else tiny_body.config.pad_token_id + 1
    table = tiny_body.embeddings.position_embeddings.weight
    encoded: tuple[list[Tensor], list[int]] = ([], [])
    decoded: tuple[list[Tensor], list[int]] = ([], [])
    with torch.no_grad():
        for row, content in enumerate(CONTENTS):
            length = len(content) + 2
            h, hidden = sentence(model, inputs.encoder.ids[row, :length])
            ids = inputs.decoder.ids[row, :length]
            context = [h, *tiny_body.embeddings(input_ids=ids.unsqueeze(0))[0, 1:]]
            states, visible = context, visible_in(inputs)
            if visible is not None:
                states = [h + table[first_position + i] for i in range(length)]
            for layer in model.decoder:
                # Enhanced decoding reads the text's own embeddings in every layer, never states.
                read = states if visible is None else context
                states = [
                    attended_alone(layer, states[i], [read[j] for j in seen_from(visible, row, i, length)])
                    for i in range(length)
                ]
            for i in range(length):
                if (label := int(inputs.encoder.labels[row, i])) != IGNORED:
                    encoded[0].append(hidden[i])
                    encoded[1].append(label)
                if (label := int(inputs.decoder.labels[row, i])) != IGNORED:
                    decoded[0].append(states[i])
                    decoded[1].append(label)
        losses = model(inputs).losses
        assert losses["encoder_mlm"].item() == pytest.approx(loss_alone(model, *encoded), rel=1e-4)
        assert losses["decoder"].item() == pytest.approx(loss_alone(model, *decoded), rel=1e-4)
    assert list(losses) == ["encoder_mlm", "decoder"]


def test_enhanced_decoding_predicts_all_tokens_but_special_ones(tiny_body: Any) -> None:
    inputs = drawn(tiny_body, CONTENTS, "enhanced")
    for row, content in enumerate(CONTENTS):
        assert [label for label in inputs.decoder.labels[row].tolist() if label != IGNORED] == content
        assert inputs.decoder.ids[row, 1 : len(content) + 1].tolist() == content
    assert inputs.predicted["decoder"] == sum(map(len, CONTENTS))


def test_basic_decoding_hides_half_behind_the_mask_token(tiny_body: Any) -> None:
    inputs = drawn(tiny_body, CONTENTS, "basic")
    assert inputs.sample is None
    hidden = inputs.decoder.labels != IGNORED
    assert hidden.sum(1).tolist() == [4, 2, 3]
    assert (inputs.decoder.ids[hidden] == MASK).all()


def test_encoder_and_decoder_are_masked_apart(tiny_body: Any) -> None:
    inputs = drawn(tiny_body, [list(range(10, 30))], "basic")
    encoder, decoder = (text.labels[0] != IGNORED for text in (inputs.encoder, inputs.decoder))
    assert encoder.sum() == 6
    assert (encoder & ~decoder).any()


@pytest.mark.parametrize("layers", [1, 3])
def test_only_the_embedding_and_visible_tokens_reach_a_prediction(tiny_body: Any, layers: int) -> None:
    model = model_of(tiny_body, layers=layers)
    inputs = drawn(tiny_body, CONTENTS, "enhanced")
    visible = visible_in(inputs)
    assert visible is not None
    embeddings = torch.randn(3, 16)
    with torch.no_grad():
        before = model.decode(embeddings, inputs)
        for j in range(1, 9):
            ids = inputs.decoder.ids.clone()
            ids[:, j] = 39
            text = replace(inputs.decoder, ids=ids)
            after = model.decode(embeddings, RetroMaeInputs(inputs.encoder, text, inputs.sample))
            changed = (after - before).abs().sum(2) > 1e-6
            # All texts are alike in this: a position changes exactly where it sees the token replaced.
            replaced = visible[:, :, j] & (inputs.decoder.mask[:, j] == 1).unsqueeze(1)
            assert torch.equal(changed, replaced)
        changed = (model.decode(embeddings + 1.0, inputs) - before).abs().sum(2) > 1e-6
    assert changed.all()


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("decoding", DECODINGS)
def test_padding_does_not_matter(tiny_body: Any, decoding: Decoding, pooling: Pooling) -> None:
    model = model_of(tiny_body, pooling)
    # The first text is the longest; without it the others need less padding.
    padded = drawn(tiny_body, CONTENTS, decoding).rows(slice(1, 3))
    with torch.no_grad():
        wide, narrow = model(padded), model(cut_to(padded, 7))
    torch.testing.assert_close(wide.embeddings, narrow.embeddings)
    for name, loss in wide.losses.items():
        torch.testing.assert_close(loss, narrow.losses[name])


def cut_to(inputs: RetroMaeInputs, length: int) -> RetroMaeInputs:
    """The same draws with less padding."""
    texts = [
        replace(text, ids=text.ids[:, :length], labels=text.labels[:, :length], mask=text.mask[:, :length])
        for text in (inputs.encoder, inputs.decoder)
    ]
    sample = inputs.sample and replace(inputs.sample, present=inputs.sample.present[:, :length])
    return RetroMaeInputs(texts[0], texts[1], sample)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_parts_of_a_batch_add_up_in_losses_and_gradients(tiny_body: Any, decoding: Decoding) -> None:
    model = model_of(tiny_body)
    inputs = drawn(tiny_body, CONTENTS, decoding)
    whole = model(inputs).losses
    sum(whole.values()).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    totals = dict.fromkeys(whole, 0.0)
    for rows in (slice(0, 1), slice(1, 3)):
        losses = model(inputs.rows(rows), inputs.predicted).losses
        sum(losses.values()).backward()
        totals = {name: totals[name] + loss.item() for name, loss in losses.items()}
    assert totals == pytest.approx({name: loss.item() for name, loss in whole.items()}, rel=1e-5)
    for name, parameter in model.named_parameters():
        if name in expected:
            torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_the_decoders_loss_reaches_the_body_through_the_embedding(tiny_body: Any, decoding: Decoding) -> None:
    model = model_of(tiny_body)
    model(drawn(tiny_body, CONTENTS, decoding)).losses["decoder"].backward()
    last = tiny_body.encoder.layer[-1].output.dense.weight.grad
    assert last is not None
    assert last.abs().sum() > 0


def test_another_family_is_named() -> None:
    with pytest.raises(UnsupportedError, match="Linear has no table of position embeddings"):
        RetroMae(torch.nn.Linear(2, 2), torch.nn.Identity(), EncodingSettings())  # type: ignore[arg-type]
