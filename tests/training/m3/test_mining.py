"""Mined negatives against brute force over every passage, and when they are mined again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.evaluation.bm25 import Bm25
from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pair_table import PairTable, RaggedRows, read_tables
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import Ranks
from tercet.training.m3 import mining, passage_index
from tercet.training.m3.miner import Miner, joined
from tercet.training.m3.mining import hard_negatives, mine_negatives, random_negatives
from tercet.training.m3.scores import side_scores
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.data import PairData, PairSource
from tercet.training.settings.objective import MinedBy, MiningSettings


@pytest.fixture
def encoder(base_folder: Path, tokenizer: Tokenizer) -> TextEncoder:
    settings = EncodingSettings(pooling="mean", max_length=32)
    torch.manual_seed(3)
    model = EncoderModel(load_body(base_folder), Heads(16, 8, settings)).eval()
    with torch.no_grad():
        model.heads.sparse.bias.fill_(0.5)
    return TextEncoder(model, tokenizer, 64, "float32", "cpu")


@pytest.fixture
def table(tmp_path: Path, tokenizer: Tokenizer) -> PairTable:
    source = PairSource(path="pairs.jsonl", title="P", licence="CC0 1.0", development_pairs=8)
    settings = PairData(sources=(source,), query_tokens=8, passage_tokens=16)
    (table,) = read_tables(settings, tmp_path / "data", tmp_path / "work", tokenizer, 1, 1)
    return table


def ranked(encoder: TextEncoder, table: PairTable, sides: tuple[str, ...]) -> tuple[Any, Any]:
    """Scores of all queries with all passages, summed over sides, and the passages best first."""
    with torch.no_grad():
        queries, passages = (
            encoder.encode_all(store.take(np.arange(len(store)))) for store in (table.queries, table.passages)
        )
        scores = sum(side_scores(queries, passages, sides).values()).numpy()
    return scores, np.argsort(-scores, axis=1)


SIDES: dict[MinedBy, tuple[str, ...]] = {
    "sum": ("dense", "sparse", "colbert"),
    "dense": ("dense",),
    "sparse": ("sparse",),
    "colbert": ("colbert",),
}


@pytest.mark.parametrize(("side", "sides"), SIDES.items(), ids=list(SIDES))
def test_mined_rows_are_the_best_of_what_is_trained_on_less_positives(
    tmp_path: Path, encoder: TextEncoder, table: PairTable, side: MinedBy, sides: tuple[str, ...]
) -> None:
    settings = MiningSettings(first=3, last=20, ceiling=100.0)  # each side proposes all 40 passages
    found = mine_negatives(encoder, table, settings, side, tmp_path)
    scores, order = ranked(encoder, table, sides)
    held_out = {row for pair in table.development for row in table.positives.of(pair).tolist()}
    for pair in range(len(table.queries)):
        own = set(table.positives.of(pair).tolist())
        # The lexical side alone finds what shares a token with the query.
        scored = [row for row in order[pair].tolist() if side != "sparse" or scores[pair][row] > 0]
        best = [row for row in scored if row not in held_out][:20]
        expected = [row for row in best if row not in own][2:]
        mined = found.of(pair).tolist()
        if pair in table.development:
            assert mined == []
            continue
        # The index rounds token vectors to eight bits, so passages of nearly equal scores may change places,
        # a positive and the last rank among them.
        assert abs(len(mined) - len(expected)) <= (side == "colbert")
        both = min(len(mined), len(expected))
        np.testing.assert_allclose(scores[pair][mined[:both]], scores[pair][expected[:both]], atol=0.02)
        assert not (own | held_out) & set(mined)


def test_bm25_ranks_by_the_word_pieces_without_the_encoder(
    tmp_path: Path, encoder: TextEncoder, table: PairTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: object) -> None:
        raise AssertionError("encoded")

    monkeypatch.setattr(TextEncoder, "hidden", refused)
    settings = MiningSettings(first=1, last=40, ceiling=100.0)
    found = mine_negatives(encoder, table, settings, "bm25", tmp_path)
    rows = table.training_passages()
    reference = Bm25([table.passages.take(rows)], encoder.tokenizer.special_ids)
    for pair in table.training.tolist():
        scores = reference.scores(table.queries.take(np.array([pair])).token_ids)
        expected = {
            row: score for row, score in zip(rows.tolist(), scores.tolist(), strict=True) if score > 0
        }
        for row in table.positives.of(pair).tolist():
            del expected[row]
        mined = found.of(pair).tolist()
        assert set(mined) == set(expected)
        ranked_scores = [expected[row] for row in mined]
        np.testing.assert_allclose(ranked_scores, sorted(ranked_scores, reverse=True), rtol=1e-5)


@pytest.mark.parametrize("side", ["sum", "dense", "bm25"])
@pytest.mark.parametrize("calls", [3, 6], ids=["passages", "queries"])
def test_a_round_that_was_killed_goes_on_with_its_next_part(
    tmp_path: Path,
    encoder: TextEncoder,
    table: PairTable,
    monkeypatch: pytest.MonkeyPatch,
    side: MinedBy,
    calls: int,
) -> None:
    monkeypatch.setattr(passage_index, "TEXTS_AT_ONCE", 4)
    monkeypatch.setattr(passage_index, "TEXTS_OF_A_COLLECTION", 8)
    monkeypatch.setattr(mining, "VECTORS_AT_ONCE", 8)
    monkeypatch.setattr(mining, "QUERIES_AT_ONCE", 8)
    settings = MiningSettings(first=1, last=6)
    whole = mine_negatives(encoder, table, settings, side, tmp_path / "whole")
    take, taken, limit = TokenStore.take, 0, calls

    def counted(store: TokenStore, rows: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken > limit:
            raise KeyboardInterrupt
        return take(store, rows)

    monkeypatch.setattr(TokenStore, "take", counted)
    attempts = 0
    while True:
        attempts += 1
        taken = 0
        try:
            found = mine_negatives(encoder, table, settings, side, tmp_path / "broken")
            break
        except KeyboardInterrupt:
            assert attempts < 40
    assert attempts > 1
    assert found.rows.tolist() == whole.rows.tolist()
    assert found.offsets.tolist() == whole.offsets.tolist()


ROWS = np.array([4, 1, 7, 3, 2, 9])
SCORES = np.array([2.9, 2.0, 1.96, 1.9, 1.0, 0.5], np.float32)


@pytest.mark.parametrize(
    ("positives", "settings", "expected"),
    [
        ([1], MiningSettings(first=1, ceiling=1.5), [4, 7, 3, 2, 9]),
        ([1], MiningSettings(first=1, ceiling=0.95), [3, 2, 9]),  # at most 0.95 · 2.0 = 1.9
        ([1], MiningSettings(first=3, ceiling=0.95), [3, 2, 9]),  # 4 and 7 were ranks 1 and 2
        ([1], MiningSettings(first=5, ceiling=0.95), [9]),
        ([1, 2], MiningSettings(first=1, ceiling=0.95), [3, 9]),  # the best positive counts
    ],
)
def test_first_and_ceiling(positives: list[int], settings: MiningSettings, expected: list[int]) -> None:
    best = float(SCORES[np.isin(ROWS, positives)].max())
    assert hard_negatives(ROWS, SCORES, np.array(positives), best, settings).tolist() == expected


def test_the_ceiling_holds_where_the_positive_is_not_among_the_hits() -> None:
    # Row 8 scores 1.0, below the hits that were asked for: at most 0.95 of that is a negative.
    assert hard_negatives(ROWS, SCORES, np.array([8]), 1.0, MiningSettings(first=2)).tolist() == [9]
    assert hard_negatives(ROWS[:4], SCORES[:4], np.array([8]), 1.0, MiningSettings(first=2)).tolist() == []


@pytest.mark.parametrize("side", ["sum", "dense"])
def test_no_mined_row_scores_above_the_ceiling_wherever_the_positive_ranks(
    tmp_path: Path, encoder: TextEncoder, table: PairTable, side: MinedBy
) -> None:
    settings = MiningSettings(first=1, last=2, ceiling=0.9)
    found = mine_negatives(encoder, table, settings, side, tmp_path)
    scores, order = ranked(encoder, table, ("dense",) if side == "dense" else ("dense", "sparse", "colbert"))
    trained_on = set(table.training_passages().tolist())
    below = 0
    for pair in table.training.tolist():
        own = table.positives.of(pair)
        best = [row for row in order[pair].tolist() if row in trained_on][:2]
        below += not set(own.tolist()) & set(best)
        mined = found.of(pair).tolist()
        assert all(scores[pair][row] <= 0.9 * scores[pair][own].max() + 0.02 for row in mined), pair
    assert below > 0


def test_random_negatives_are_as_many_and_no_positives(
    tmp_path: Path, encoder: TextEncoder, table: PairTable
) -> None:
    settings = MiningSettings(draw="random", first=3, last=10)
    found = Miner(encoder, [table], settings, "sum", tmp_path, Ranks(), 7).negatives(0)[0]
    passages = set(table.training_passages().tolist())
    for pair in range(len(table.queries)):
        drawn = found.of(pair).tolist()
        assert len(set(drawn)) == len(drawn) == (0 if pair in table.development else 8)
        assert set(drawn) <= passages - set(table.positives.of(pair).tolist())
    other = random_negatives(table, settings, np.random.default_rng(8))
    assert other.rows.tolist() != found.rows.tolist()
    assert set(found.rows.tolist()) == passages  # none of 32 is left out of 32 · 8 draws


def test_given_and_mined_rows_are_joined() -> None:
    given = RaggedRows.pack([np.array([5, 1]), np.zeros(0, np.int64)])
    mined = RaggedRows.pack([np.array([1, 3]), np.array([2])])
    both = joined(given, mined)
    assert [both.of(pair).tolist() for pair in range(2)] == [[1, 3, 5], [2]]


def test_negatives_are_mined_anew_when_due_and_kept_on_disk(
    tmp_path: Path, encoder: TextEncoder, table: PairTable
) -> None:
    settings = MiningSettings(every_steps=10, first=1, last=6)
    miner = Miner(encoder, [table], settings, "sum", tmp_path, Ranks(), 1)
    encoder.model.train()
    (first,) = miner.negatives(0)
    assert encoder.model.training
    assert miner.negatives(9)[0] is first
    with torch.no_grad():
        encoder.model.heads.sparse.weight.neg_()
        encoder.model.heads.colbert.weight.normal_()
    (second,) = miner.negatives(10)
    assert first.rows.tolist() != second.rows.tolist()
    assert list(tmp_path.glob("mining-*")) == []
    # A run that goes on from step 5 with other weights in memory reads what was mined at step 0.
    again = Miner(encoder, [table], settings, "sum", tmp_path, Ranks(), 1)
    assert again.negatives(5)[0].rows.tolist() == first.rows.tolist()
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == [
        "negatives-0000000.npz",
        "negatives-0000010.npz",
    ]
    once = Miner(encoder, [table], MiningSettings(first=1, last=6), "sum", tmp_path, Ranks(), 1)
    assert once.negatives(1_000)[0].rows.tolist() == first.rows.tolist()
