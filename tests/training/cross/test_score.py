"""The stage that trains a cross-encoder, and the scores that it writes into training files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

import tercet.training.cross.score_file
from tercet.models.checkpoint import EncodingSettings
from tercet.models.cross_encoder import CrossEncoder, load_cross_encoder
from tercet.models.errors import CheckpointError
from tercet.models.representations import TokenBatch, offsets_of
from tercet.models.tokenizer import Tokenizer
from tercet.training.cross.score_file import write_scores
from tercet.training.cross.scoring import CrossScoring
from tercet.training.data.pair_table import read_tables
from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError, TrainingDataError
from tercet.training.settings.data import QueryData, ScoreSource
from tests.tiny.cross_encoders import classifier

SettingsOf = Callable[[dict[str, Any]], Any]
Run = Callable[..., Any]
SCORE = {
    "stage": "score",
    "encoder": None,
    "heads": None,
    "losses": None,
    "data.sources": [{"path": "pairs.jsonl", "title": "Made pairs", "licence": "CC0 1.0"}],
    "optimization": {"steps": 60, "learning_rate": 0.01, "dropout": 0.0},
}
WRITES = {**SCORE, "data.sources": [{**SCORE["data.sources"][0], "write_scores": True}]}  # type: ignore[index]  # a list
QUERY = np.array([2, 5, 6, 3], np.int32)
PASSAGES = TokenBatch(
    np.array([2, 7, 8, 9, 3, 2, 9, 3], np.int32), offsets_of(np.array([5, 3])), np.zeros(2, np.bool_)
)


def test_texts_are_joined_as_their_tokenizer_does(tokenizer: Tokenizer) -> None:
    content = json.loads(tokenizer.to_bytes())
    processor = content["post_processor"]
    begin, text, end = processor["single"]
    processor["pair"] = [begin, text, end, end, {"Sequence": {"id": "B", "type_id": 0}}, end]
    two = Tokenizer(json.dumps(content).encode(), tokenizer.settings)
    of_one, of_two = (
        CrossEncoder(classifier("bert"), own, "float32", "cpu").pairs(QUERY, PASSAGES)
        for own in (tokenizer, two)
    )
    assert of_one.token_ids.tolist() == [2, 5, 6, 3, 7, 8, 9, 3, 2, 5, 6, 3, 9, 3]
    assert of_one.lengths.tolist() == [8, 6]
    assert of_two.token_ids.tolist() == [2, 5, 6, 3, 3, 7, 8, 9, 3, 2, 5, 6, 3, 3, 9, 3]
    for pairs, start in ((of_one, 4), (of_two, 5)):
        assert pairs.second_starts is not None
        assert pairs.second_starts.tolist() == [start, start]


def test_logits_are_those_of_the_library_and_padding_changes_nothing(tokenizer: Tokenizer) -> None:
    model = classifier("bert")
    encoder = CrossEncoder(model, tokenizer, "float32", "cpu")
    texts = TokenBatch.concatenate([encoder.pairs(QUERY, PASSAGES), encoder.pairs(QUERY[:3], PASSAGES)])
    alone = []
    for row, start in enumerate([4, 4, 3, 3]):
        ids = texts.token_ids[texts.offsets[row] : texts.offsets[row + 1]].tolist()
        types = [int(place >= start) for place in range(len(ids))]
        with torch.no_grad():
            alone += model(torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits[:, 0].tolist()
    assert encoder.scores(texts, 100) == pytest.approx(alone, abs=1e-5)
    assert encoder.scores(texts, 1) == pytest.approx(alone, abs=1e-5)


def test_a_decoder_without_a_padding_token_takes_batches(tokenizer: Tokenizer) -> None:
    model = classifier("llama")
    model.config.pad_token_id = None
    encoder = CrossEncoder(model, tokenizer, "float32", "cpu")
    pairs = encoder.pairs(QUERY, PASSAGES)
    alone = [float(encoder.scores(pairs.take(np.array([row])), 100)[0]) for row in range(2)]
    assert encoder.scores(pairs, 100) == pytest.approx(alone, abs=1e-5)


def test_the_loss_is_that_of_the_group_whatever_goes_through_together(
    settings_of: SettingsOf, base_folder: Path, tmp_path: Path
) -> None:
    tokenizer = Tokenizer.load(base_folder, EncodingSettings())
    found = []
    for budget in (10_000, 40):
        settings = settings_of({**SCORE, "batches.sub_batch_tokens": budget})
        model = classifier("bert")
        encoder = CrossEncoder(model, tokenizer, "float32", "cpu")
        work = tmp_path / str(budget)
        tables = read_tables(settings.data.pairs, tmp_path / "data", work, tokenizer, 1, 5)
        stage = CrossScoring(encoder, tables, settings, Ranks())
        loss = float(stage.accumulate(0, lambda loss: loss).losses["loss"])
        found.append((loss, [p.grad for p in model.parameters()]))
        generator = np.random.default_rng([5, 0, 0])
        pairs = stage._planned[1].batches[0][1]
        groups = [stage._group(tables[0], int(pair), generator) for pair in pairs]
        assert all(len(group) == 3 for group in groups)
        logits = np.array([encoder.scores(group, 1000) for group in groups], np.float64)
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        assert loss == pytest.approx(-np.log(shares[:, 0]).mean(), abs=1e-5)
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-6)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_run_learns_and_its_scores_teach_an_encoder(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data" / "pairs.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["neg"] = [lines[(number + step) % len(lines)]["pos"][0] for step in (7, 11)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    losses: list[float] = []
    run("cross", WRITES, lambda line: losses.append(line["losses"]["loss"]))
    assert np.mean(losses[-10:]) < np.mean(losses[:10])

    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "cross").eval()
    assert model.config.num_labels == 1
    assert not (tmp_path / "cross" / "tercet.json").exists()
    tokenizer = Tokenizer.load(tmp_path / "cross", EncodingSettings())
    encoder = CrossEncoder(model, tokenizer, "float32", "cpu")
    scored = tmp_path / "cross" / "scored" / "pairs.jsonl"
    written = [json.loads(line) for line in scored.read_text().splitlines()]
    assert [{key: line[key] for key in ("query", "pos", "neg")} for line in written] == lines
    (query,) = (tokenizer.tokenize([lines[3]["query"]], "query").token_ids,)
    texts = encoder.pairs(query, tokenizer.tokenize(lines[3]["neg"]))
    assert written[3]["neg_scores"] == pytest.approx(encoder.scores(texts, 1000), abs=1e-5)
    assert len(written[3]["pos_scores"]) == 1

    path.write_text(scored.read_text())
    run("student", {"losses.teacher_scores": 1.0, "optimization.steps": 1})


def test_scores_go_on_where_they_were_killed(
    base_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tercet.training.cross.score_file, "LINES_AT_ONCE", 4)
    tokenizer = Tokenizer.load(base_folder, EncodingSettings())
    encoder = CrossEncoder(classifier("bert"), tokenizer, "float32", "cpu")
    source = ScoreSource(path="pairs.jsonl", title="P", licence="CC0 1.0", write_scores=True)
    settings = QueryData(query_tokens=8, passage_tokens=16)

    def write(folder: Path) -> Path:
        return write_scores(encoder, tokenizer, source, settings, tmp_path / "data", folder, 64)

    whole = write(tmp_path / "whole").read_text()
    assert len(whole.splitlines()) == 40
    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / "pairs.jsonl.unfinished").write_text(whole[: len(whole) // 2])
    calls: list[int] = []
    scores = encoder.scores

    def counted(*given: Any) -> Any:
        calls.append(1)
        return scores(*given)

    monkeypatch.setattr(encoder, "scores", counted)
    resumed = [json.loads(line) for line in write(killed).read_text().splitlines()]
    for line, expected in zip(resumed, map(json.loads, whole.splitlines()), strict=True):
        assert line["query"] == expected["query"]
        assert line["pos_scores"] == pytest.approx(expected["pos_scores"], abs=1e-5)
    assert 4 <= len(calls) <= 6
    assert [path.name for path in killed.iterdir()] == ["pairs.jsonl"]
    write(killed)
    assert len(calls) <= 6

    (tmp_path / "data" / "pairs.jsonl").write_text('{"query": "word1", "pos": ["word2"], "negs": []}\n')
    with pytest.raises(TrainingDataError, match=r'pairs\.jsonl:1: "negs" is no key'):
        write(tmp_path / "bad")


def test_what_a_cross_encoder_cannot_use_is_refused(settings_of: SettingsOf, run: Run) -> None:
    for changes, message in (
        ({"batches.negatives": 0}, r"batches\.negatives: it is 0, but must be at least 1 in stage score"),
        ({"encoder": {"pooling": "cls"}}, "architecture and encoder"),
        ({"losses": {}}, "losses: not read in stage score, only in finetune, contrastive"),
    ):
        with pytest.raises(ConfigError, match=message):
            settings_of({**SCORE, **changes})
    source = {**WRITES["data.sources"][0], "format": "titles"}  # type: ignore[index]  # a list
    with pytest.raises(ConfigError, match="write_scores: it is true, but must be left out"):
        settings_of({**SCORE, "data.sources": [source]})
    with pytest.raises(ConfigError, match="together they are 33, but the base has positions for 32"):
        run("long", {**SCORE, "data.query_tokens": 17})


def test_a_folder_without_weights_is_named(tmp_path: Path, base_folder: Path) -> None:
    (base_folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=str(base_folder)):
        load_cross_encoder(base_folder)
