"""Training files: what is read, and how a bad line is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tercet.training.data.pairs import (
    LineRules,
    TrainingPair,
    joined_neighbours,
    passages_of,
    read_pairs,
)
from tercet.training.errors import TrainingDataError


def test_reads_pairs_plain_and_packed(tmp_path: Path) -> None:
    lines = '{"query": "q1", "pos": ["a", "b"]}\n\n{"query": "q2", "pos": ["c"], "neg": ["d"]}\n'
    (tmp_path / "pairs.jsonl").write_text(lines)
    (tmp_path / "pairs.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    expected = [TrainingPair("q1", ("a", "b"), ()), TrainingPair("q2", ("c",), ("d",))]
    assert list(read_pairs(tmp_path / "pairs.jsonl")) == expected
    assert list(read_pairs(tmp_path / "pairs.jsonl.gz")) == expected


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ('{"pos": ["a"]}', '"query" must be a text'),
        ('{"query": " ", "pos": ["a"]}', '"query" must be a text'),
        ('{"query": "q", "pos": []}', '"pos" must hold at least one'),
        ('{"query": "q"}', '"pos" must be a list'),
        ('{"query": "q", "pos": "a"}', '"pos" must be a list'),
        ('{"query": "q", "pos": ["a"], "neg": [1]}', '"neg" must be a list'),
        (
            '{"query": "q", "pos": ["a"], "negs": ["b"]}',
            '"negs" is no key of training pairs; known are query',
        ),
        ('{"query": "q", "pos": ["a"], "prompt": 3}', '"prompt" must be a text'),
        ('{"query": "q", "pos": ["a"], "pos_scores": [1]}', r'"pos_scores" is not used .* losses\.teacher_'),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"query": "q", "pos": ["a"]}\n' + line + "\n")
    with pytest.raises(TrainingDataError, match=complaint) as raised:
        list(read_pairs(path))
    assert f"{path}:2" in str(raised.value)


def read_line(path: Path, rules: LineRules, **keys: object) -> TrainingPair:
    path.write_text(json.dumps({"query": "q", "pos": ["a"], **keys}) + "\n")
    (pair,) = read_pairs(path, (), rules)
    return pair


def test_scores_of_a_teacher_stand_beside_their_passages(tmp_path: Path) -> None:
    keys = {"neg": ["b", "c"], "pos_scores": [7.5], "neg_scores": [-2, 0.25]}
    path = tmp_path / "pairs.jsonl"
    assert read_line(path, LineRules(scores=True), **keys).scores == (7.5, -2.0, 0.25)
    assert read_line(path, LineRules(scores=False), **keys).scores == ()
    assert read_line(path, LineRules(scores=True)).scores == ()
    assert read_line(path, LineRules(scores=True), pos_scores=[1]).scores == (1.0,)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"pos_scores": [1.0, 2.0], "neg_scores": [0.0]}, '"pos_scores" must hold .* "pos", but has 2 for 1'),
        ({"pos_scores": [1.0], "neg_scores": []}, '"neg_scores" must hold .* "neg", but has 0 for 1'),
        ({"pos_scores": [1.0]}, '"neg_scores" must hold'),
        ({"neg_scores": [1.0]}, '"pos_scores" must hold'),
        ({"pos_scores": 1.0}, '"pos_scores" must be a list of finite numbers'),
        ({"pos_scores": [True], "neg_scores": [0.0]}, '"pos_scores" must be a list of finite numbers'),
        ({"pos_scores": ["1"], "neg_scores": [0.0]}, '"pos_scores" must be a list of finite numbers'),
        (
            {"pos_scores": [1.0], "neg_scores": [float("nan")]},
            '"neg_scores" must be a list of finite numbers',
        ),
        ({"pos_scores": [1.0], "neg_scores": [10**400]}, '"neg_scores" must be a list of finite numbers'),
    ],
)
def test_scores_that_do_not_fit_their_passages_are_named(
    tmp_path: Path, keys: dict[str, object], complaint: str, learned: bool
) -> None:
    with pytest.raises(TrainingDataError, match=f"pairs.jsonl:1: {complaint}"):
        read_line(tmp_path / "pairs.jsonl", LineRules(scores=learned), neg=["b"], **keys)


def test_a_prompt_is_read_where_the_encoder_has_no_instruction_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    assert read_line(path, LineRules(), prompt="ask: ").prompt == "ask: "
    instructed = LineRules(query_instruction="query: ")
    assert read_line(path, instructed, prompt="query: ").prompt == ""
    assert read_line(path, instructed).prompt == ""
    with pytest.raises(TrainingDataError, match=r'pairs\.jsonl:1: "prompt" is "ask: ", but the encoder puts'):
        read_line(path, instructed, prompt="ask: ")


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingDataError, match="absent"):
        list(read_pairs(tmp_path / "absent.jsonl"))
    whole = gzip.compress(b'{"query": "q", "pos": ["a"]}\n' * 100)
    damaged = whole[:10] + b"\xff" + whole[11:]
    for content in (whole[:-12], damaged, b"no gzip"):
        (tmp_path / "cut.jsonl.gz").write_bytes(content)
        with pytest.raises(TrainingDataError, match=r"cut\.jsonl\.gz: cannot be read"):
            list(read_pairs(tmp_path / "cut.jsonl.gz"))


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes('{"query": "é", "pos": ["한국"]}\n{"query": "'.encode() + b'\xe9", "pos": ["a"]}\n')
    pairs = read_pairs(path)
    assert next(pairs).positives == ("한국",)
    with pytest.raises(TrainingDataError, match=r"latin\.jsonl:2: not UTF-8"):
        next(pairs)


def test_a_span_of_lines_is_counted_from_one_with_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f'{{"query": "q{n}", "pos": ["a"]}}\n\n' for n in range(5)))
    assert [pair.query for pair in read_pairs(path, (3, 7))] == ["q1", "q2", "q3"]
    assert list(read_pairs(path, (11, 20))) == []


def test_neighbours_are_joined_and_shared() -> None:
    pairs = [TrainingPair(f"q{number}", (f"s{number // 2}",), ("n",)) for number in range(40)]
    joined = joined_neighbours(pairs, 3, seed=1)
    passages = list(dict.fromkeys(passage for pair in joined for passage in pair.positives))
    assert " ".join(passages) == " ".join(f"s{number}" for number in range(20))
    assert {len(passage.split()) for passage in passages} == {1, 2, 3}
    for before, after in zip(pairs, joined, strict=True):
        assert after.query == before.query
        assert after.negatives == ("n",)
        assert before.positives[0] in after.positives[0].split()
    assert joined_neighbours(pairs, 1, seed=1) == pairs


def test_held_out_texts_come_from_a_beir_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "1", "text": "one"}) + "\n")
    assert list(passages_of(tmp_path)) == ["one"]
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"title": "The", "text": "one"}) + "\n\n")
    assert list(passages_of(tmp_path)) == ["The\none"]
    (tmp_path / "corpus.jsonl").write_text('{"_id": "1"}\n')
    with pytest.raises(TrainingDataError, match=r"corpus\.jsonl:1"):
        list(passages_of(tmp_path))
    with pytest.raises(TrainingDataError, match="neither"):
        list(passages_of(tmp_path / "absent"))
