"""`tercet pairs filter`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tercet.models.checkpoint import ENGLISH
from tests.cli.conftest import Run

LINES = [
    {"query": "why do bees dance?", "pos": ["Bees dance to tell where flowers are."]},
    {"query": "Why do bees dance", "pos": ["Bees dance to tell where flowers are!"]},
    {"query": "tea", "pos": ["Tea is brewed with hot water."]},
    {"query": "who wrote the law?", "pos": ["The train leaves the station at noon."]},
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)), encoding="utf-8")
    return path


def test_counts_and_files(tercet: Run, pairs: Path, tmp_path: Path) -> None:
    flags = ("--near-duplicates", "0.9", "--query-characters", "4:", "--output", "kept.jsonl")
    done = tercet("pairs", "filter", pairs.name, *flags, "--report", "report.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Wrote kept.jsonl: 2 lines of 4, 2 pairs of 4",
        "  1  queries of another length",
        "  1  near duplicates of an earlier pair",
    ]
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert kept == [LINES[0], LINES[3]]
    report = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert [record["line"] for record in report] == ["pairs.jsonl:2", "pairs.jsonl:3"]


def test_an_encoder_judges_where_asked(tercet: Run, pairs: Path) -> None:
    flags = ("--round-trip", "1", "--least-score", "0.3", "--drop-contained", "--checkpoint", ENGLISH)
    done = tercet("pairs", "filter", pairs.name, *flags, "--output", "kept.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["lines"], answer["pairs"]) == (4, 4)
    assert answer["dropped"]["contained"] == 1
    assert answer["dropped"]["low_score"] + answer["dropped"]["not_found_again"] >= 1
    assert answer["pairs_kept"] == 4 - sum(answer["dropped"].values())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "give one filter at least"),
        (("--query-characters", "5"), "is no MIN:MAX"),
        (("--passage-characters", "9:3"), "is no MIN:MAX"),
        (("--passage-characters", "a:"), "is no MIN:MAX"),
        (("--near-duplicates", "1.5"), "no number above 0 and at most 1"),
        (("--near-duplicates", "nan"), "no number above 0 and at most 1"),
        (("--round-trip", "0"), "--round-trip"),
        (("--drop-contained", "--beside", "x.jsonl"), "goes with --round-trip"),
        (("--least-score", "1", "--weights", "1,1,1,1"), "no BM25"),
        (("--drop-contained", "--report", "pairs.jsonl"), "is given twice"),
        (("--drop-contained", "--report", "none/report.jsonl"), "there is no such folder"),
    ],
)
def test_what_it_refuses(tercet: Run, pairs: Path, flags: tuple[str, ...], message: str) -> None:
    refused = tercet("pairs", "filter", pairs.name, "--output", "kept.jsonl", *flags)
    assert refused.returncode == 2
    assert message in " ".join(refused.stderr.split())
    assert not (pairs.parent / "kept.jsonl").exists()


def test_a_bad_line_is_one_line(tercet: Run, pairs: Path) -> None:
    pairs.write_text('{"query": "x", "pos": []}')
    refused = tercet("pairs", "filter", pairs.name, "--output", "kept.jsonl", "--drop-contained")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert 'pairs.jsonl:1: "pos" must hold at least one passage' in refused.stderr
