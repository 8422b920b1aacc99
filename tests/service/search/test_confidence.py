"""How sure a search is of its hits: what moves it, and what does not."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.calibration import Calibration
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection
from tercet.models.checkpoint import SHIPPED, SHIPPED_FOLDER
from tercet.models.encoder import Encoder
from tercet.models.loader import load_encoder
from tercet.service.search.calibrations import (
    CALIBRATION_FILE,
    CheckpointCalibration,
    calibration_of_checkpoint,
)

GAP = 2.0
CALIBRATION = Calibration((-1.0, 0.5, 0.25, 1.0, -0.125, GAP), 0.5, 10)
TUNING = Tuning("000001", 10, 2, 0, 0.5, 0.5)
QUERY = "hot tea"  # with its last special token three vectors


@pytest.fixture
async def calibrated(make_client: Any, data: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server whose collection `demo` has a calibration."""
    defaults = SearchDefaults(Weights(), CandidateLimits(), TUNING, CALIBRATION)
    Collection.open(data / "collections", "demo").store_defaults(defaults)
    async with make_client() as client:
        yield client


async def ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/search", json={"collection": "demo", "query": QUERY, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def confidences(answer: dict[str, Any]) -> dict[str, float]:
    return {hit["id"]: hit["confidence"] for hit in answer["hits"]}


async def test_confidences_by_hand(calibrated: httpx.AsyncClient) -> None:
    answer = await ask(calibrated)
    sums = [sum(hit["scores"][side] for side in ("dense", "sparse", "colbert")) for hit in answer["hits"]]
    for hit, total in zip(answer["hits"], sums, strict=True):
        dense, sparse, colbert = (hit["scores"][side] for side in ("dense", "sparse", "colbert"))
        gap = total - (sums[1] if total == sums[0] else sums[0])
        value = -1 + 0.5 * dense + 0.25 * sparse + colbert - 0.125 * math.log(3) + GAP * gap
        assert hit["confidence"] == pytest.approx(1 / (1 + math.exp(-value)), abs=1e-4)
    assert answer["confident"] == (answer["hits"][0]["confidence"] >= 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 1},
        {"offset": 1},
        {"min_score": 0.5},
        {"boosts": [{"filter": {"exists": "year"}, "add": 5}]},
        {"weights": {"dense": 0, "sparse": 2, "colbert": 0}},
        {"weights": {"colbert": 0}, "include": ["confidence"]},
        {"fusion": "rrf"},
        {"group_by": "kind"},
        {"explain": True, "highlight": True},
        {"min_confidence": 0.0},
    ],
)
async def test_nothing_but_the_three_scores_moves_it(
    calibrated: httpx.AsyncClient, options: dict[str, Any]
) -> None:
    plain, other = await ask(calibrated), await ask(calibrated, **options)
    assert other["hits"]
    assert confidences(other).items() <= confidences(plain).items()
    assert other["confident"] == plain["confident"]


async def test_less_sure_hits_are_left_out(calibrated: httpx.AsyncClient) -> None:
    every = confidences(await ask(calibrated))
    least = sorted(every.values())[-2]
    some = await ask(calibrated, min_confidence=least, explain=True, highlight=True)
    assert confidences(some) == {id: value for id, value in every.items() if value >= least}
    assert all("explanation" in hit and "highlights" in hit for hit in some["hits"])
    none = await ask(calibrated, min_confidence=1)
    assert (none["hits"], none["confident"]) == ([], some["confident"])
    response = await calibrated.post(
        "/search", json={"collection": "demo", "queries": [QUERY, "train"], "min_confidence": least}
    )
    first, second = response.json()["results"]
    assert confidences(first) == confidences(some)
    assert {"confident"} <= first.keys() & second.keys()
    assert "confident" not in response.json()


async def test_a_part_that_is_not_included_is_not_there(calibrated: httpx.AsyncClient) -> None:
    answer = await ask(calibrated, include=["scores"])
    assert "confident" not in answer
    assert "confidence" not in answer["hits"][0]


@pytest.mark.parametrize(
    ("body", "named", "message"),
    [
        ({"min_confidence": 1.5}, "min_confidence", "is 1.5; use at most 1"),
        ({"min_confidence": 0.4, "query": {"like": ["tea"]}}, "min_confidence", "is a stored document"),
    ],
)
async def test_what_cannot_be_known_is_refused(
    calibrated: httpx.AsyncClient, body: dict[str, Any], named: str, message: str
) -> None:
    response = await calibrated.post("/search", json={"collection": "demo", "query": QUERY, **body})
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (422, named)
    assert message in error["message"]


async def test_without_a_calibration_nothing_is_said(client: httpx.AsyncClient) -> None:
    answer = await ask(client)
    assert "confident" not in answer
    assert "confidence" not in answer["hits"][0]
    response = await client.post(
        "/search", json={"collection": "demo", "query": QUERY, "min_confidence": 0.4}
    )
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["code"]) == (422, "min_confidence", "unsupported")
    assert "tercet tune demo FOLDER" in error["message"]


def test_a_calibration_holds_for_its_own_encoder_alone(tmp_path: Path, tiny: Encoder) -> None:
    info = replace(tiny.info, checkpoint=str(tmp_path))
    assert calibration_of_checkpoint(info, info.fingerprint) is None
    stored = CheckpointCalibration(info.fingerprint, "idf", CALIBRATION, ("squad",))
    stored.write(tmp_path)
    assert calibration_of_checkpoint(info, info.fingerprint) == stored
    assert calibration_of_checkpoint(info, "0" * 64) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in SHIPPED if (SHIPPED_FOLDER / name / CALIBRATION_FILE).is_file()]
)
def test_what_comes_with_a_checkpoint_is_for_it(name: str) -> None:
    info = load_encoder(name).info
    known = CheckpointCalibration.read(SHIPPED_FOLDER / name)
    assert (known.fingerprint, known.lexical) == (info.fingerprint, info.lexical)
    assert calibration_of_checkpoint(info, info.fingerprint) == known
