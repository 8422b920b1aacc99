"""What is printed of a build that is done, or that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tercet.cli import options
from tercet.cli.output import console, counted, megabytes, print_json, print_pairs
from tercet.cli.sources import GivenSources

if TYPE_CHECKING:
    from tercet.ingest.build import BuildReport


@contextmanager
def json_failures(progress: options.ProgressKind) -> Iterator[None]:
    """Prints, with progress as JSON, what a service passes on to clients, which full messages are not for."""
    try:
        yield
    except Exception as error:
        if progress == "json":
            from tercet.service.errors import failure_of

            print_json({"error": failure_of(error).message})
        raise


def print_json_report(done: BuildReport, given: GivenSources) -> None:
    """A build that is done, as a job reads it."""
    print_json(
        {
            "documents_done": done.documents,
            "documents_total": done.documents,
            "tokens": done.tokens,
            "skipped": done.skipped,
            "skips": [given.said(skip) for skip in done.skips],
            "truncated": done.truncated,
            "fraction": 1.0,
            "seconds": round(done.seconds, 3),
            "collection": done.collection,
            "snapshot": done.snapshot,
        }
    )


def print_report(done: BuildReport, given: GivenSources, folder: Path) -> None:
    """A build that is done, for people. folder: the collection's."""
    rate = f"{done.documents / done.seconds:,.0f} documents/s"
    if done.tokens:
        rate += f", {done.tokens / done.seconds:,.0f} tokens/s"
    pairs: dict[str, Any] = {
        "collection": f"{done.collection}, snapshot {done.snapshot}",
        "documents": done.documents,
        **({"tokens": done.tokens} if done.tokens else {}),
        "time": f"{done.seconds:,.1f} s ({rate})",
        "size": megabytes(_folder_bytes(folder)),
    }
    if done.windows is not None:
        pairs["windows"] = done.windows
    if done.truncated:
        pairs["truncated"] = (
            f"{counted(done.truncated, 'document is', 'documents are')} longer than the encoder's limit and "
            f"{'was' if done.truncated == 1 else 'were'} cut"
        )
    if done.skipped:
        pairs["skipped"] = done.skipped
    print_pairs(pairs, console())
    given.print_skips(done.skips, done.skipped)


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
