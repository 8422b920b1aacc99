"""Pairs of a source as rows: distinct passages, and what is held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pair_table import (
    PairTable,
    RaggedRows,
    read_tables,
    require_scores,
    shuffled_groups,
)
from tercet.training.data.token_store import TokenStore
from tercet.training.errors import TrainingDataError
from tercet.training.settings.data import PairData, PairSource

SOURCE = PairSource(path="pairs.jsonl", title="P", licence="CC0 1.0")


def write(folder: Path, pairs: list[dict[str, Any]], name: str = "pairs.jsonl") -> None:
    (folder / name).write_text("".join(json.dumps(pair) + "\n" for pair in pairs))


def read(
    folder: Path, tokenizer: Tokenizer, source: PairSource = SOURCE, neighbours: int = 1, seed: int = 1
) -> PairTable:
    settings = PairData(sources=(source,), query_tokens=8, passage_tokens=16)
    (table,) = read_tables(settings, folder, folder / "work", tokenizer, neighbours, seed)
    return table


def words(store: TokenStore, rows: Any) -> list[str]:
    """The words of texts, without special tokens."""
    batch = store.take(np.asarray(rows, np.int64))
    parts = np.split(batch.token_ids, batch.offsets[1:-1])
    return [" ".join(f"word{token - 5}" for token in part[1:-1]) for part in parts]


def many(count: int = 30) -> list[dict[str, Any]]:
    """Pair n asks for passage n; every third also for passage n + 1."""
    passages = [f"word{n} word{n + 1}" for n in range(count + 1)]
    return [
        {"query": f"word{n}", "pos": passages[n : n + 2] if n % 3 == 0 else [passages[n]]}
        for n in range(count)
    ]


def test_equal_passages_share_a_row(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(
        tmp_path,
        [
            {"query": "word1", "pos": ["word2", "word3"], "neg": ["word4"]},
            {"query": "word5 word6", "pos": ["word3"], "neg": ["word2", "word7 word8 word9"]},
            {"query": "word1", "pos": ["word4"]},
        ],
    )
    table = read(tmp_path, tokenizer)
    assert words(table.queries, [0, 1, 2]) == ["word1", "word5 word6", "word1"]
    assert words(table.passages, range(4)) == ["word2", "word3", "word4", "word7 word8 word9"]
    assert len(table.passages) == 4
    assert [table.positives.of(pair).tolist() for pair in range(3)] == [[0, 1], [1], [2]]
    assert [table.negatives.of(pair).tolist() for pair in range(3)] == [[2], [0, 3], []]
    assert table.training.tolist() == [0, 1, 2]
    assert (len(table.development), len(table.pool)) == (0, 0)


def test_the_longest_positive_gives_a_pairs_length(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(
        tmp_path,
        [{"query": "word1", "pos": ["word2", "word3 word4 word5"]}, {"query": "w", "pos": ["word2"]}],
    )
    table = read(tmp_path, tokenizer)
    assert table.passage_tokens(np.array([1, 0])).tolist() == [3, 5]


def test_no_positive_of_a_held_out_pair_is_trained_on(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, many())
    table = read(
        tmp_path, tokenizer, SOURCE.model_copy(update={"development_pairs": 8, "development_passages": 5})
    )
    held = {row for pair in table.development for row in table.positives.of(pair).tolist()}
    trained = {row for pair in table.training for row in table.positives.of(pair).tolist()}
    assert len(table.development) == 8
    assert not held & trained
    # Pairs left out of both share a passage with a held-out one.
    neither = set(range(30)) - {*table.development.tolist(), *table.training.tolist()}
    assert neither
    assert all(held & set(table.positives.of(pair).tolist()) for pair in neither)
    assert held <= set(table.pool.tolist())
    assert len(held) < len(table.pool) <= len(held) + 5
    assert table.pool.tolist() == sorted(set(table.pool.tolist()))


def test_the_split_depends_on_the_seed_alone(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, many())
    source = SOURCE.model_copy(update={"development_pairs": 8})
    first, again = read(tmp_path, tokenizer, source), read(tmp_path, tokenizer, source)
    other = read(tmp_path, tokenizer, source, seed=2)
    assert first.development.tolist() == again.development.tolist()
    assert first.development.tolist() != other.development.tolist()


def test_most_counts_held_out_pairs_too(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, [{"query": f"word{n}", "pos": [f"word{n}"]} for n in range(30)])
    table = read(tmp_path, tokenizer, SOURCE.model_copy(update={"most": 10, "development_pairs": 4}))
    assert (len(table.training), len(table.development)) == (6, 4)


def test_a_source_that_only_chooses_the_weights(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, many())
    write(tmp_path, many(), "more.jsonl")
    chooses = SOURCE.model_copy(update={"train": False, "development_pairs": 8})
    sources = (chooses, PairSource(path="more.jsonl", title="M", licence="CC0 1.0"))
    settings = PairData(sources=sources, query_tokens=8, passage_tokens=16)
    tables = read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1)
    assert [(len(table.training), len(table.development)) for table in tables] == [(0, 8), (30, 0)]


def test_neighbours_are_held_out_together(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, [{"query": f"word{n}", "pos": [f"word{n}"]} for n in range(30)])
    table = read(tmp_path, tokenizer, SOURCE.model_copy(update={"development_pairs": 9}), neighbours=3)
    assert [pair % 3 for pair in table.development.tolist()] == [0, 1, 2] * 3


def test_titles_spans_and_joined_passages(tmp_path: Path, tokenizer: Tokenizer) -> None:
    text = " ".join(f"word{n}" for n in range(20))
    write(tmp_path, [{"title": "word1 word2", "text": text}, {"text": text}])
    titles = read(tmp_path, tokenizer, SOURCE.model_copy(update={"format": "titles"}))
    assert words(titles.queries, [0]) == ["word1 word2"]
    assert len(titles.queries) == 1
    spans = read(tmp_path, tokenizer, SOURCE.model_copy(update={"format": "spans"}))
    assert len(spans.queries) == 2
    write(tmp_path, [{"query": "q", "pos": [f"word{n}"]} for n in range(10)])
    joined = read(tmp_path, tokenizer, SOURCE.model_copy(update={"join_up_to": 3}))
    assert " ".join(words(joined.passages, range(len(joined.passages)))) == " ".join(
        f"word{n}" for n in range(10)
    )


def test_pairs_inside_held_out_collections_are_left_out(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, [{"query": f"word{n}", "pos": [f"word{n} word{n + 1}"]} for n in range(4)])
    (tmp_path / "beir").mkdir()
    write(tmp_path / "beir", [{"_id": "1", "text": "Word0, word1; word2"}], "corpus.jsonl")
    settings = PairData(sources=(SOURCE,), query_tokens=8, passage_tokens=16, held_out=("beir",))
    (table,) = read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1)
    assert words(table.queries, range(len(table.queries))) == ["word2", "word3"]
    write(tmp_path, [{"query": "q", "pos": ["word1"]}])
    with pytest.raises(TrainingDataError, match=r"pairs\.jsonl: no pair is left"):
        read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1)


@pytest.mark.parametrize("format", ["titles", "spans", "repeats"])
def test_pairs_are_not_made_of_held_out_documents(tmp_path: Path, tokenizer: Tokenizer, format: Any) -> None:
    texts = [" ".join(f"word{n} word{k}" for k in range(20)) for n in range(20, 26)]
    documents = [{"_id": str(n), "title": f"word{n}", "text": text} for n, text in enumerate(texts)]
    write(tmp_path, documents)
    (tmp_path / "beir").mkdir()
    write(tmp_path / "beir", documents[:4], "corpus.jsonl")
    source = SOURCE.model_copy(update={"format": format})
    settings = PairData(sources=(source,), query_tokens=8, passage_tokens=16, held_out=("beir",))
    (table,) = read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1)
    assert len(table.queries) == 2


def test_a_pair_with_a_held_out_negative_is_left_out(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pairs = [{"query": f"word{n}", "pos": [f"word{n + 8}"], "neg": [f"word{n + 20} word1"]} for n in range(3)]
    write(tmp_path, pairs)
    (tmp_path / "beir").mkdir()
    write(tmp_path / "beir", [{"_id": "1", "text": "word21 word1"}], "corpus.jsonl")
    settings = PairData(sources=(SOURCE,), query_tokens=8, passage_tokens=16, held_out=("beir",))
    (table,) = read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1)
    assert words(table.queries, range(len(table.queries))) == ["word0", "word2"]


def test_a_held_out_passage_does_not_hide_among_joined_ones(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, [{"query": f"word{n}", "pos": [f"word{n} word{n + 10}"]} for n in range(6)])
    (tmp_path / "beir").mkdir()
    write(tmp_path / "beir", [{"_id": "1", "text": "word2 word12"}], "corpus.jsonl")
    source = SOURCE.model_copy(update={"join_up_to": 6})
    settings = PairData(sources=(source,), query_tokens=8, passage_tokens=16, held_out=("beir",))
    for seed in range(3):
        (table,) = read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, seed)
        assert "word2" not in words(table.queries, range(len(table.queries)))
        assert "word12" not in " ".join(words(table.passages, range(len(table.passages))))


def test_groups_stay_together_in_random_order() -> None:
    order = shuffled_groups(11, 4, np.random.default_rng(1)).tolist()
    assert sorted(order) == list(range(11))
    assert all(order[order.index(first) :][: len(group)] == group for first, group in GROUPS)
    assert shuffled_groups(0, 4, np.random.default_rng(1)).tolist() == []


GROUPS = [(0, [0, 1, 2, 3]), (4, [4, 5, 6, 7]), (8, [8, 9, 10])]


def test_ragged_rows_give_back_what_they_pack() -> None:
    rows = [np.array([3, 1]), np.zeros(0, np.int64), np.array([2])]
    packed = RaggedRows.pack(rows)
    assert [packed.of(pair).tolist() for pair in range(3)] == [[3, 1], [], [2]]
    assert RaggedRows.pack([]).offsets.tolist() == [0]


SCORED = [
    {"query": "word1", "pos": ["word2"], "neg": ["word3", "word4"], "pos_scores": [3], "neg_scores": [1, -2]},
    {"query": "word5", "pos": ["word6"], "neg": ["word4"]},
]


def test_scores_find_their_passages_in_a_batch(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, SCORED)
    settings = PairData(sources=(SOURCE,), query_tokens=8, passage_tokens=16)
    (table,) = read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1, scores=True)
    assert words(table.passages, range(4)) == ["word2", "word3", "word4", "word6"]
    found = table.scored.of_batch(np.array([1, 0]), np.array([3, 0, 2, 0]))
    nan = np.nan
    np.testing.assert_array_equal(found, [[nan, nan, nan, nan], [nan, 3, -2, 3]])
    require_scores([table])
    (table,) = read_tables(settings, tmp_path, tmp_path / "again", tokenizer, 1, 1, scores=False)
    assert len(table.scored.scores) == 0
    with pytest.raises(TrainingDataError, match=r"pairs\.jsonl: no line has neg_scores"):
        require_scores([table])


def test_passages_with_scores_are_not_joined(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, SCORED)
    sources = (SOURCE.model_copy(update={"join_up_to": 3}),)
    settings = PairData(sources=sources, query_tokens=8, passage_tokens=16)
    with pytest.raises(TrainingDataError, match="join_up_to = 3 would join them"):
        read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1, scores=True)


def test_a_prompt_stands_before_the_query_for_the_encoder_alone(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write(tmp_path, [{"query": "word1", "pos": ["word2"], "prompt": "word9 "}])
    settings = PairData(
        sources=(SOURCE.model_copy(update={"taught": True}),), query_tokens=8, passage_tokens=16
    )
    (table,) = read_tables(settings, tmp_path, tmp_path / "work", tokenizer, 1, 1, tokenizer)
    assert table.taught is not None
    assert words(table.queries, [0]) == ["word9 word1"]
    assert words(table.taught.queries, [0]) == ["word1"]
