"""Dense vectors lose their mean; lexical weights and token vectors stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pair_table import read_tables
from tercet.training.errors import ConfigError
from tercet.training.m3.centring import centre, mean_of_dense
from tercet.training.m3.initial_heads import sample_pairs
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.run import FinetuneRun


@pytest.fixture(params=["mean", "cls"])
def model(request: pytest.FixtureRequest, tiny_body: torch.nn.Module) -> EncoderModel:
    torch.manual_seed(3)
    tiny_body.encoder.later = torch.nn.LayerNorm(16)  # type: ignore[union-attr]  # of something else, as in DeBERTa
    settings = EncodingSettings(pooling=request.param, max_length=24)
    return EncoderModel(tiny_body, Heads(16, 8, settings)).eval()


@torch.no_grad()
def test_only_the_dense_side_moves(model: EncoderModel) -> None:
    ids = torch.tensor([[2, 7, 9, 30, 3], [2, 11, 3, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    pooling = model.heads.settings.pooling
    hidden = model.hidden(ids, mask)
    pooled = torch.stack(
        [
            hidden[i, 0] if pooling == "cls" else hidden[i, :length].mean(dim=0)
            for i, length in ((0, 5), (1, 3))
        ]
    )
    _, sparse, colbert = model(ids, mask)
    mean = pooled.mean(dim=0)
    centre(model, mean)
    dense, sparse_after, colbert_after = model(ids, mask)
    torch.testing.assert_close(dense, torch.nn.functional.normalize(pooled - mean, dim=-1))
    assert float(dense[0] @ dense[1]) == pytest.approx(-1)  # two vectors on either side of their mean
    real = mask.bool()
    torch.testing.assert_close(sparse_after[real], sparse[real])
    torch.testing.assert_close(colbert_after[real], colbert[real])


def test_the_mean_is_that_of_queries_and_passages_alike(
    settings_of: Callable[[dict[str, Any]], FinetuneRun],
    base_folder: Path,
    tokenizer: Tokenizer,
    tmp_path: Path,
) -> None:
    """Of all pairs: between the mean query and the mean passage, each pooled over its own tokens."""
    model = EncoderModel(load_body(base_folder), Heads(16, 8, EncodingSettings(pooling="mean"))).eval()
    encoder = TextEncoder(model, tokenizer, 64, "float32", "cpu")
    (table,) = read_tables(settings_of({}).data, tmp_path / "data", tmp_path, tokenizer, 1, 0)
    found = mean_of_dense(encoder, *sample_pairs([table], 10**6, seed=1))
    positives = table.positives.rows[table.positives.offsets[table.training]]
    means = []
    for store, rows in ((table.queries, table.training), (table.passages, positives)):
        texts = (torch.from_numpy(store.take(rows[i : i + 1]).padded(0)[0]) for i in range(len(rows)))
        with torch.no_grad():
            states = [model.hidden(ids, torch.ones_like(ids))[0].mean(dim=0) for ids in texts]
        means.append(torch.stack(states).mean(dim=0))
    torch.testing.assert_close(found, (means[0] + means[1]) / 2, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(means[0], means[1], rtol=1e-2)


def test_a_body_without_such_a_bias_is_refused() -> None:
    model = EncoderModel(torch.nn.Linear(4, 4), Heads(4, 2, EncodingSettings()))
    with pytest.raises(ConfigError, match="its last layer norm has no bias"):
        centre(model, torch.zeros(4))
