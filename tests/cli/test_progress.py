"""What is said of long work, on lines."""

import json

import pytest

from tercet.cli.output import counted
from tercet.cli.progress import build_progress
from tercet.ingest.progress import BuildProgress


def test_every_phase_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.cli.progress.LINES_EVERY_SECONDS", -1.0)
    with build_progress("lines") as report:
        report(BuildProgress("learning", 0.5))
        report(BuildProgress("encoding", 0.25, 1, 4, 30, seconds=2.0))
        report(BuildProgress("indexing", 0.4, 1))
    assert capsys.readouterr().err == (
        "learning 50%\n"
        "encoding 25%  1/4 documents, 0 documents/s, 15 tokens/s, 6 s left\n"
        "indexing 40%  1 document\n"
    )


def test_a_phase_that_begins_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with build_progress("json") as report:
        for phase, fraction in (("sampling", 0.1), ("sampling", 0.2), ("learning", 0.0), ("learning", 0.5)):
            report(BuildProgress(phase, fraction))  # type: ignore[arg-type]
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "phase": "learning",
        "fraction": 0.0,
        "documents_done": 0,
        "documents_total": None,
        "tokens": 0,
        "skipped": 0,
    }


def test_one_is_not_several() -> None:
    assert [counted(count, "document") for count in (0, 1, 2000)] == [
        "0 documents",
        "1 document",
        "2,000 documents",
    ]
    assert counted(1, "query", "queries") == "1 query"
    assert counted(2, "query", "queries") == "2 queries"
