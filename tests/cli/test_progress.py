"""What is said of long work, on lines."""

import pytest

from tercet.cli.output import counted
from tercet.cli.progress import build_progress
from tercet.ingest.build import BuildProgress


def progress(documents: int, **more: object) -> BuildProgress:
    given = {"total": None, "tokens": 0, "skipped": 0, "fraction": 1.0, "seconds": 0.0, **more}
    return BuildProgress(documents, **given)  # type: ignore[arg-type]


def test_publishing_tells_of_vectors_only_while_they_are_indexed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with build_progress("lines") as report:
        report(progress(7, publishing=True))
    assert capsys.readouterr().err == "publishing  7 documents\n"
    monkeypatch.setattr("tercet.cli.progress.LINES_EVERY_SECONDS", -1.0)
    with build_progress("lines") as report:
        report(progress(1, publishing=True, indexed=0.25))
        report(progress(1, total=1, publishing=True, indexed=1.0))
    assert capsys.readouterr().err == (
        "publishing, 25% of the vectors indexed  1 document\npublishing  1/1 document\n"
    )


def test_one_is_not_several() -> None:
    assert [counted(count, "document") for count in (0, 1, 2000)] == [
        "0 documents",
        "1 document",
        "2,000 documents",
    ]
    assert counted(1, "query", "queries") == "1 query"
    assert counted(2, "query", "queries") == "2 queries"
