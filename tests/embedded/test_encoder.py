"""The encoder of programs: shapes, scores, errors, and that importing `tercet` loads nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tercet
from tercet.models.encoder import Encoder

PAIRS = [("green tea", "tea is brewed"), ("rail", "a history of rail"), ("green tea", "bread"), ("rail", " ")]


@pytest.fixture
def encoder(tiny: Encoder) -> tercet.Encoder:
    return tercet.Encoder(tiny)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, tercet; print(sorted({'numpy', 'fastapi', 'pydantic'} & set(sys.modules)), dir(tercet))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] ")
    assert "'load'" in done.stdout
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        tercet.lode  # noqa: B018 - asking is what fails


def test_texts_become_three_representations(encoder: tercet.Encoder) -> None:
    found = encoder.encode(["green tea", "a history of rail"])
    assert found.dense is not None
    assert found.sparse is not None
    assert found.colbert is not None
    assert (len(found), found.dense.dtype, len(found.dense)) == (2, np.float32, 2)
    assert len(found.sparse[0].token_ids) == len(found.sparse[0].weights) > 0
    assert found.colbert[1].ndim == 2
    assert len(found.colbert[1]) <= found.tokens[1]


def test_only_what_is_asked_for_is_given(encoder: tercet.Encoder) -> None:
    found = encoder.encode(["a long text of many words"], "query", outputs=("sparse",), max_length=4)
    assert found.dense is None
    assert found.colbert is None
    assert found.truncated.tolist() == [True]


def test_a_score_is_the_sum_of_its_parts_in_any_company(encoder: tercet.Encoder) -> None:
    found = encoder.score(PAIRS)
    for pair, one in zip(PAIRS, found, strict=True):
        assert one.dense is not None
        assert one.sparse is not None
        assert one.colbert is not None
        assert one.score == pytest.approx(one.dense + one.sparse + one.colbert, abs=1e-9)
        assert encoder.score([pair])[0].score == pytest.approx(one.score, abs=1e-5)
    assert found[3].score == 0  # a blank text says nothing
    weighed = encoder.score(PAIRS[:1], weights={"dense": 2, "sparse": 0, "colbert": 0})[0]
    assert weighed.score == pytest.approx(2 * weighed.dense)  # type: ignore[operator]  # this encoder has the side
    assert encoder.score([]) == []


def test_scores_are_those_of_reranking(encoder: tercet.Encoder, tmp_path: Path) -> None:
    texts = ["tea is brewed", "a history of rail"]
    with tercet.open(tmp_path / "data", encoder=encoder) as store:
        ranked = store.rerank("green tea", texts)["results"]
    scores = encoder.score([("green tea", text) for text in texts])
    for each in ranked:
        own = scores[each["index"]]
        assert each["score"] == own.score
        assert each["scores"] == {"dense": own.dense, "sparse": own.sparse, "colbert": own.colbert}


def test_mistakes_are_told(encoder: tercet.Encoder) -> None:
    with pytest.raises(TypeError, match="give a list"):
        encoder.encode("green tea")
    with pytest.raises(ValueError, match="choose among dense, sparse, colbert"):
        encoder.encode(["green tea"], outputs=("dens",))  # type: ignore[arg-type]  # as an untyped caller would
    with pytest.raises(tercet.ApiError, match="no token"):
        encoder.score([(" ", "tea")])
    with pytest.raises(tercet.TercetError, match="neither one that comes with Tercet"):
        tercet.load("no/such/checkpoint")


def test_the_embedded_checkpoint_is_loaded_by_name() -> None:
    encoder = tercet.load("minilm-m3", threads=1)
    found = encoder.encode(["a text"])
    assert encoder.info.name == "minilm-m3"
    assert found.dense is not None
    assert found.dense.shape == (1, 384)
