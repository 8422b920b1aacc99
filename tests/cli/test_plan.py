"""`tercet plan`: what it prints, and what it refuses."""

import json
import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ASKED = [
    "plan",
    "--documents",
    "1e9",
    "--tokens",
    "150",
    "--qps",
    "100",
    "--encoder",
    "minilm-m3",
    "--codec",
    "residual1",
]


def test_a_plan_is_printed(tercet: Run) -> None:
    done = tercet(*ASKED)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert (
        "a document 5,308 bytes: dense 768, search 272, postings 300, weights 800, tokens 2,700, text 468"
        in said
    )
    assert "in memory 1.34 TB, once" in said
    assert "shards 13 of 76,923,077 documents" in said
    assert "machines 26: 2 replicas of each, 16 cores, 128 GiB" in said
    assert "for a search that waits for no other" in said


def test_a_plan_as_json(tercet: Run) -> None:
    first = json.loads(tercet(*ASKED, "--json").stdout)
    assert first["unloaded_latency_ms"] > first["search_core_ms"]["candidates"]
    assert (first["shards"], first["replicas"], first["nodes"]) == (13, 2, 26)
    assert first["dense"] == {"kind": "hnsw", "recall": 0.991}


@pytest.mark.slow
def test_a_number_beyond_the_limits_is_wrong_usage(tercet: Run) -> None:
    for wrong in (
        *(["--codec", "int7"], ["--recall", "1.5"], ["--qps", "0"], ["--documents", "many"]),
        *(["--documents", "nan"], ["--qps", "inf"], ["--memory-gib", "nan"]),
    ):
        done = tercet(*ASKED, *wrong)
        assert done.returncode == 2, wrong
        assert "Traceback" not in done.stderr
