"""Commands may open as many files as the system gives, whatever their shell was given at first."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.index.writer import SegmentLimits

Run = Callable[..., subprocess.CompletedProcess[str]]

SEGMENTS = 48  # more than the open files that are allowed, however few a segment needs


@pytest.mark.slow
def test_a_collection_of_many_segments_is_searched_under_a_low_limit(
    tmp_path: Path, environment: dict[str, str], tercet: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "many.jsonl"
    source.write_text("\n".join(json.dumps({"id": f"d{i}", "text": f"tea {i}"}) for i in range(SEGMENTS)))
    monkeypatch.setattr("tercet.index.writer.SegmentLimits", lambda: SegmentLimits(documents=1))
    done = tercet("collection", "build", str(source), "--collection", "many")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "data" / "collections" / "many" / "segments").iterdir())) == SEGMENTS

    def allow_few() -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (SEGMENTS, hard))

    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "tercet.cli.main",
            "search",
            "many",
            "tea",
            "--top-k",
            str(SEGMENTS),
            "--json",
        ],
        cwd=tmp_path,
        env=environment,
        preexec_fn=allow_few,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    assert len(json.loads(found.stdout)["hits"]) == SEGMENTS
