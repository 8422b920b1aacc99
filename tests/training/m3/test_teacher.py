"""The teacher's scores against its own sides, and what the student learns from them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.models.checkpoint import EncodingSettings
from tercet.models.heads import Heads
from tercet.models.weights.head_weights import write_heads
from tercet.training.data.batch_plan import PairBatch
from tercet.training.data.pair_table import read_tables
from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError
from tercet.training.m3.losses import distillation_loss
from tercet.training.m3.scores import side_scores
from tercet.training.m3.teacher import Teacher
from tercet.training.runs.log import read_log
from tercet.training.settings.data import PairData, PairSource

SettingsOf = Callable[[dict[str, Any]], Any]
Run = Callable[..., Any]


@pytest.fixture
def teacher_folder(base_folder: Path, tmp_path: Path) -> Path:
    """The tiny base with heads."""
    folder = Path(shutil.copytree(base_folder, tmp_path / "teacher"))
    torch.manual_seed(11)
    heads = Heads(16, 4, EncodingSettings())
    with torch.no_grad():
        heads.sparse.bias.fill_(0.4)
    write_heads(folder, heads.weights())
    (folder / "tercet.json").write_text('{"pooling": "mean", "max_length": 32, "lexical": "idf"}')
    return folder


def test_scores_are_the_plain_sum_of_its_sides_with_the_idf_of_the_source(
    tmp_path: Path, teacher_folder: Path
) -> None:
    teacher = Teacher(str(teacher_folder), 64, "float32", "cpu")
    sources = (
        PairSource(path="pairs.jsonl", title="P", licence="CC0 1.0"),
        PairSource(path="pairs.jsonl", title="Q", licence="CC0 1.0", taught=True),
    )
    settings = PairData(sources=sources, query_tokens=8, passage_tokens=16)
    tokenizer = teacher.tokenizer
    tables = read_tables(settings, tmp_path / "data", tmp_path / "work", tokenizer, 1, 1, tokenizer)
    assert tables[0].taught is None
    texts = tables[1].taught
    assert texts is not None
    np.testing.assert_array_equal(texts.queries.token_ids, tables[1].queries.token_ids)

    batch = PairBatch(1, np.array([3, 0]), np.array([5, 1, 2]))
    plain = teacher.scores(texts, batch, Ranks())
    teacher.weigh(tables)
    found = teacher.scores(texts, batch, Ranks())
    encoder = teacher._encoder
    with torch.no_grad():
        queries = encoder.encode_all(texts.queries.take(batch.pairs))
        passages = encoder.encode_all(texts.passages.take(batch.passages))
        sides = side_scores(queries, passages)
    torch.testing.assert_close(plain, sides["dense"] + sides["sparse"] + sides["colbert"])
    weighted = side_scores(teacher._idf[1].weighted(queries), passages)["sparse"]
    torch.testing.assert_close(found, sides["dense"] + weighted + sides["colbert"])
    assert not torch.equal(found, plain)


def test_a_teacher_has_a_temperature_of_its_own() -> None:
    student, teacher = torch.tensor([[0.1, 0.3]]), torch.tensor([[4.0, 2.0]])
    allowed = torch.ones(1, 2, dtype=torch.bool)
    targets = torch.softmax(teacher / 2.0, dim=1)
    expected = -(targets * torch.log_softmax(student / 0.5, dim=1)).sum()
    torch.testing.assert_close(distillation_loss(student, teacher, allowed, 0.5, 2.0), expected)


@pytest.mark.slow
def test_the_term_is_there_for_taught_sources_alone_and_changes_what_is_learned(
    run_values: dict[str, Any], run: Run, teacher_folder: Path, tmp_path: Path
) -> None:
    sources = [{**run_values["data"]["sources"][0], "taught": True}]
    teacher = {"checkpoint": str(teacher_folder), "factor": 5.0}
    run("alone", {"optimization.dropout": 0.0})
    run("taught", {"optimization.dropout": 0.0, "teacher": teacher, "data.sources": sources})
    alone, taught = (
        [line["losses"] for line in read_log(tmp_path / name / "run") if "losses" in line]
        for name in ("alone", "taught")
    )
    assert not any("teacher" in losses for losses in alone)
    assert all(losses["teacher"] > 0 for losses in taught)
    assert alone[0]["dense"] == taught[0]["dense"]
    assert alone[-1]["dense"] != taught[-1]["dense"]


def test_a_teacher_without_sources_and_sources_without_a_teacher_are_refused(
    run_values: dict[str, Any], settings_of: SettingsOf
) -> None:
    taught = [{**run_values["data"]["sources"][0], "taught": True}]
    for changes in ({"teacher": {"checkpoint": "x"}}, {"data.sources": taught}):
        with pytest.raises(ConfigError, match="sources with taught = true"):
            settings_of(changes)
