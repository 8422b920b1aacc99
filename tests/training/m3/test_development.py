"""nDCG@10 by hand, and the figures of a table against one query at a time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pair_table import read_tables
from tercet.training.m3.development import all_scores, development_figures, judged_side, mean_of, ndcg
from tercet.training.m3.scores import side_scores
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.data import PairData, PairSource


def test_ndcg_by_hand() -> None:
    scores = np.array([[0.9, 0.8, 0.7, 0.1], [0.1, 0.2, 0.3, 0.4]], np.float32)
    relevant = np.array([[0, 1, 0, 1], [0, 0, 0, 1]], np.bool_)
    second, fourth = 1 / math.log2(3), 1 / math.log2(5)
    first_query = (second + fourth) / (1 + second)
    assert ndcg(scores, relevant, 10) == pytest.approx((first_query + 1) / 2)
    # Of the first query only rank 2 counts now, and one hit would be the most at cutoff 1.
    assert ndcg(scores, relevant, 2) == pytest.approx((second / (1 + second) + 1) / 2)
    assert ndcg(scores, relevant, 1) == pytest.approx(0.5)


def test_a_checkpoint_is_judged_by_what_trains() -> None:
    figures = {"A": {"dense": 0.2, "sum": 0.5}, "B": {"dense": 0.4, "sum": 0.9}}
    assert mean_of(figures, judged_side("finetune")) == pytest.approx(0.7)
    assert mean_of(figures, judged_side("contrastive")) == pytest.approx(0.3)


@pytest.mark.slow
def test_figures_rank_the_pool_of_a_table(tmp_path: Path, base_folder: Path, tokenizer: Tokenizer) -> None:
    source = PairSource(
        path="pairs.jsonl", title="P", licence="CC0 1.0", development_pairs=8, development_passages=20
    )
    settings = PairData(sources=(source,), query_tokens=8, passage_tokens=16)
    (table,) = read_tables(settings, tmp_path / "data", tmp_path / "work", tokenizer, 1, 1)
    torch.manual_seed(3)
    heads = Heads(16, 8, EncodingSettings(pooling="mean", max_length=32))
    encoder = TextEncoder(EncoderModel(load_body(base_folder), heads).eval(), tokenizer, 20, "float32", "cpu")
    scores = all_scores(encoder, table)
    with torch.no_grad():
        for place, pair in enumerate(table.development.tolist()):
            query = encoder.encode(table.queries.take(np.array([pair])))
            for column, row in enumerate(table.pool.tolist()):
                found = side_scores(query, encoder.encode(table.passages.take(np.array([row]))))
                each = [found[side].item() for side in ("dense", "sparse", "colbert")]
                assert [side[place, column] for side in scores] == pytest.approx(each, abs=1e-5)
    relevant = np.array([np.isin(table.pool, table.positives.of(pair)) for pair in table.development])
    figures = development_figures(encoder, table)
    assert figures["sum"] == pytest.approx(ndcg(scores.sum(axis=0), relevant, 10))
    assert development_figures(encoder, table, ["dense"]) == {"dense": figures["dense"]}
    assert figures["sparse"] == pytest.approx(ndcg(scores[1], relevant, 10))
