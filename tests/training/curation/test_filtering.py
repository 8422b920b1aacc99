"""Filters of training pairs that need no encoder, and the files that are written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tercet.training.curation.filtering import FilterCounts, PairFilters, filter_pairs
from tercet.training.curation.pair_lines import REASONS
from tercet.training.curation.rules import Lengths, PairRules, is_contained
from tercet.training.data.pairs import ANY_LINE, read_pairs
from tercet.training.errors import TrainingDataError

NONE_DROPPED = dict.fromkeys(REASONS, 0)


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_half_a_surrogate_pair_passes_as_it_came(tmp_path: Path) -> None:
    pairs = write(tmp_path / "pairs.jsonl", {"query": "bees \ud83d", "pos": ["honey bees", "x"]})
    rules = PairRules(passage=Lengths(3, 100))
    filter_pairs([pairs], tmp_path / "kept.jsonl", PairFilters(rules))
    assert read(tmp_path / "kept.jsonl") == [{"query": "bees \ud83d", "pos": ["honey bees"]}]


@pytest.mark.parametrize(
    ("query", "passage", "contained"),
    [
        ("Green tea", "Green tea", True),
        ("green TEA!", "We drink green-tea daily.", True),
        ("green tea", "Tea is green.", False),
        ("???", "what???", True),
        ("???", "what?", False),
    ],
)
def test_a_query_within_its_passage(query: str, passage: str, contained: bool) -> None:
    assert is_contained(query, passage) == contained


def test_rules_by_hand() -> None:
    rules = PairRules(Lengths(3, 10), Lengths(5), contained=True)
    assert rules.broken(" ab ", "long enough") == ("query_length", 2)
    assert rules.broken("a" * 11, "long enough") == ("query_length", 11)
    assert rules.broken("why so?", "tiny") == ("passage_length", 4)
    assert rules.broken("enough", "long enough") == ("contained", 6)
    assert rules.broken("why so?", "long enough") is None


def test_each_positive_is_judged_and_a_line_goes_with_its_last(tmp_path: Path) -> None:
    kept = {"query": "whole, 그대로", "pos": ["a passage"], "neg": ["x"], "prompt": "p: "}
    source = write(
        tmp_path / "pairs.jsonl",
        kept,
        {
            "query": "some of it",
            "pos": ["tiny", "a longer passage", "bit"],
            "pos_scores": [1, 2.5, 3],
            "neg": ["n"],
            "neg_scores": [0],
        },
        {"query": "nothing", "pos": ["tiny"]},
    )
    output, report = tmp_path / "kept.jsonl", tmp_path / "report.jsonl"
    counts = filter_pairs([source], output, PairFilters(PairRules(passage=Lengths(5))), report)
    assert counts == FilterCounts(3, 2, 5, 2, {**NONE_DROPPED, "passage_length": 3})
    shortened = {
        "query": "some of it",
        "pos": ["a longer passage"],
        "pos_scores": [2.5],
        "neg": ["n"],
        "neg_scores": [0],
    }
    assert read(output) == [kept, shortened]
    assert output.read_text(encoding="utf-8").splitlines()[0] == source.read_text().splitlines()[0]
    assert len(list(read_pairs(output, rules=ANY_LINE))) == 2
    assert read(report) == [
        {"line": f"{source}:2", "positive": 0, "reason": "passage_length", "characters": 4},
        {"line": f"{source}:2", "positive": 2, "reason": "passage_length", "characters": 3},
        {"line": f"{source}:3", "positive": 0, "reason": "passage_length", "characters": 4},
    ]


def test_near_duplicates_in_several_files_name_the_first(tmp_path: Path) -> None:
    passage = "Bees dance to tell the others where flowers are and how far away they lie."
    first = write(
        tmp_path / "a.jsonl", {"query": "x", "pos": ["y"]}, {"query": "why dance?", "pos": [passage]}
    )
    second = tmp_path / "b.jsonl.gz"
    second.write_bytes(gzip.compress(json.dumps({"query": "Why dance", "pos": [passage.upper()]}).encode()))
    output, report = tmp_path / "kept.jsonl.gz", tmp_path / "report.jsonl"
    counts = filter_pairs([first, second], output, PairFilters(near_duplicates=0.9), report)
    assert counts.dropped == {**NONE_DROPPED, "near_duplicate": 1}
    assert gzip.decompress(output.read_bytes()).decode() == first.read_text()
    assert read(report) == [
        {"line": f"{second}:1", "positive": 0, "reason": "near_duplicate", "of": f"{first}:2"}
    ]


def test_what_a_rule_leaves_out_makes_no_other_a_duplicate(tmp_path: Path) -> None:
    passage = "a passage that is long enough for the rule"
    source = write(
        tmp_path / "pairs.jsonl",
        {"query": "a passage that", "pos": [passage]},
        {"query": "a passage, that", "pos": [passage]},
    )
    filters = PairFilters(PairRules(query=Lengths(15)), near_duplicates=0.9)
    assert filter_pairs([source], tmp_path / "kept.jsonl", filters).lines_kept == 1


def test_a_bad_line_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "pairs.jsonl", {"query": "x", "pos": ["y"]}, {"query": "x", "negs": []})
    with pytest.raises(TrainingDataError, match=r"pairs.jsonl:2: \"negs\" is no key"):
        filter_pairs([source], tmp_path / "kept.jsonl", PairFilters())
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]
