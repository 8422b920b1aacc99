"""What adapters compute, against the papers' formulas written out over the blocks of a plain body."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.attach import attach, named_tensors, trainable_parameters
from tercet.models.adapters.kinds import AdapterSettings
from tercet.models.adapters.settings import (
    BottleneckSettings,
    MixAndMatchSettings,
    PromptSettings,
    SparseSettings,
)
from tercet.models.encoder_model import load_body

pytestmark = pytest.mark.slow

Moved = Callable[[list[Any], int], None]
Tensors = dict[str, Any]


@pytest.fixture
def ids() -> Any:
    """Tokens of three texts of one length."""
    return torch.randint(5, 60, (3, 9), generator=torch.Generator().manual_seed(0))


def disturbed(bert: Path, settings: AdapterSettings, moved: Moved, ids: Any) -> tuple[Any, Tensors]:
    """States float[B, L, d] of a body with an adapter whose parameters have moved, and these parameters."""
    body = attach(load_body(bert), "law", settings).eval()
    moved(trainable_parameters(body), 1)
    return body(input_ids=ids).last_hidden_state, dict(named_tensors(body, "law", settings))


def attended_with_prefix(block: Any, states: Any, keys: Any, values: Any) -> Any:
    """The attention sub-layer's output, where queries also attend to keys and values float[P, d]."""
    own, heads = block.attention.self, block.attention.self.num_attention_heads
    texts, _, width = states.shape

    def by_head(part: Any) -> Any:
        return part.view(*part.shape[:-1], heads, width // heads).transpose(-2, -3)

    query = by_head(own.query(states))
    key = by_head(torch.cat([keys.expand(texts, -1, -1), own.key(states)], dim=1))
    value = by_head(torch.cat([values.expand(texts, -1, -1), own.value(states)], dim=1))
    attention = (query @ key.mT * (width // heads) ** -0.5).softmax(-1)
    mixed = (attention @ value).transpose(-2, -3).reshape(states.shape)
    return block.attention.output.LayerNorm(block.attention.output.dense(mixed) + states)


def with_feed_forward(
    bert: Path, ids: Any, added: Callable[[int, Any, Any], Any], prefixes: Tensors | None = None
) -> Any:
    """States of the plain body, where `added` to each feed-forward sub-layer's output is a function of the
    block, the sub-layer's input and its output. prefixes: keys and values of blocks, if any.
    """
    body: Any = load_body(bert).eval()
    states = body.embeddings(input_ids=ids)
    for number, block in enumerate(body.encoder.layer):
        if prefixes is None:
            attended = block.attention(states)[0]
        else:
            prefix = [prefixes[f"layers.{number}.prefix_{part}"] for part in ("key", "value")]
            attended = attended_with_prefix(block, states, *prefix)
        middle = torch.nn.functional.gelu(
            attended @ block.intermediate.dense.weight.T + block.intermediate.dense.bias
        )
        output = middle @ block.output.dense.weight.T + block.output.dense.bias
        states = block.output.LayerNorm(output + added(number, attended, output) + attended)
    return states


def bottleneck(tensors: Tensors, at: str, given: Any) -> Any:
    """U·relu(D·x + d) + u."""
    down, up = ((tensors[f"{at}.{part}.weight"], tensors[f"{at}.{part}.bias"]) for part in ("down", "up"))
    return torch.relu(given @ down[0].T + down[1]) @ up[0].T + up[1]


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("placement", ["parallel", "feed_forward"])
def test_a_bottleneck_reads_the_input_or_the_output(
    bert: Path, moved: Moved, ids: Any, placement: Any, scale: float
) -> None:
    settings = BottleneckSettings(width=6, placement=placement, scale=scale)
    found, tensors = disturbed(bert, settings, moved, ids)
    role = "residual" if placement == "parallel" else "output"

    def added(block: int, given: Any, output: Any) -> Any:
        read = given if placement == "parallel" else output
        return scale * bottleneck(tensors, f"layers.{block}.{role}", read)

    expected = with_feed_forward(bert, ids, added)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert (expected - with_feed_forward(bert, ids, lambda *_: 0.0)).abs().max() > 0.05


def test_sparse_changes_are_added_to_the_weights(bert: Path, moved: Moved, ids: Any) -> None:
    settings = SparseSettings(count=500, targets=("value", "output"))
    found, tensors = disturbed(bert, settings, moved, ids)
    body: Any = load_body(bert).eval()
    blocks = body.encoder.layer
    layers = [
        (role, layer.weight.data)
        for block in blocks
        for role, layer in (
            ("query", block.attention.self.query),
            ("key", block.attention.self.key),
            ("value", block.attention.self.value),
            ("attention_output", block.attention.output.dense),
            ("intermediate", block.intermediate.dense),
            ("output", block.output.dense),
        )
    ]
    changes = dict(zip(tensors["indices"].tolist(), tensors["values"].tolist(), strict=True))
    largest = torch.cat([w.abs().flatten() for role, w in layers if role in settings.targets]).topk(500)[0][
        -1
    ]
    start = 0
    for role, weight in layers:
        flat = weight.view(-1)
        chosen = {n for n in range(flat.numel()) if start + n in changes}
        if role in settings.targets:  # those of the largest size, until others are chosen
            assert chosen == set(torch.nonzero(flat.abs() >= largest).view(-1).tolist())
        else:
            assert not chosen
        for place in chosen:
            flat[place] += changes[start + place]
        start += flat.numel()
    torch.testing.assert_close(found, body(input_ids=ids).last_hidden_state, atol=1e-6, rtol=0)


def test_mix_and_match_is_a_prefix_and_a_parallel_bottleneck(bert: Path, moved: Moved, ids: Any) -> None:
    found, tensors = disturbed(bert, MixAndMatchSettings(length=5, width=6, scale=2.0), moved, ids)

    def added(block: int, given: Any, _: Any) -> Any:
        return 2.0 * bottleneck(tensors, f"layers.{block}.residual", given)

    expected = with_feed_forward(bert, ids, added, tensors)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    for without in (
        with_feed_forward(bert, ids, added),
        with_feed_forward(bert, ids, lambda *_: 0.0, tensors),
    ):
        assert (expected - without).abs().max() > 1e-3


def test_a_prompt_goes_through_the_blocks_before_the_text(bert: Path, moved: Moved, ids: Any) -> None:
    found, tensors = disturbed(bert, PromptSettings(length=4), moved, ids)
    body: Any = load_body(bert).eval()
    states = torch.cat([tensors["prompt"].expand(len(ids), -1, -1), body.embeddings(input_ids=ids)], dim=1)
    for block in body.encoder.layer:
        states = block(states)
    torch.testing.assert_close(found, states[:, 4:], atol=1e-6, rtol=0)
    assert (found - body(input_ids=ids).last_hidden_state).abs().max() > 1e-3
