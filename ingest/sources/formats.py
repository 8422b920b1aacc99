"""What somebody may say that a file is, and where in it the records are. This loads nothing."""

from __future__ import annotations

from typing import Literal

FileFormat = Literal["jsonl", "json", "csv", "tsv", "parquet", "arrow", "markdown", "html", "pdf", "text"]
"""What a file is, whatever its name ends in."""
ENDINGS: dict[FileFormat, str] = {
    **{"jsonl": ".jsonl", "json": ".json", "csv": ".csv", "tsv": ".tsv"},
    **{"parquet": ".parquet", "arrow": ".arrow"},
    **{"markdown": ".md", "html": ".html", "pdf": ".pdf", "text": ".txt"},
}
RECORDS_EXAMPLE = "data.paragraphs"


def record_keys(path: str) -> tuple[str, ...]:
    """The keys of a path with dots between. Raises ValueError where one is empty."""
    keys = tuple(path.split("."))
    if not all(keys):
        raise ValueError(f"{path!r:.80} is no path such as {RECORDS_EXAMPLE}")
    return keys
