"""Standard input as a source: kept in a file, since a build reads its source more than once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import BinaryIO

from tercet.ingest.sources.packed import PackedFile

_BLOCK_BYTES = 2**20
_LOOKED_AT_BYTES = 2**12
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_TABLES = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".arrow"}
_MARK = b"\xef\xbb\xbf"


def kept(stream: BinaryIO, folder: Path) -> Path:
    """The file that holds what was read, to its end; its name ends in what it is found to be.

    Raises SourceError where it is packed and the beginning is damaged, OSError where there is no room.
    """
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, _BLOCK_BYTES)
    with path.open("rb") as file:
        packing = _known(file.read(_LOOKED_AT_BYTES), _PACKED) or ""
    path = path.rename(f"{path}{packing}")
    with PackedFile(path).opened(lambda: "its beginning") as unpacked:
        kind = kind_of_content(unpacked.read(_LOOKED_AT_BYTES))
    return path.rename(folder / f"stdin{kind}{packing}")


def kind_of_content(beginning: bytes) -> str:
    """The ending of a name for what begins so. JSON lines and arrays are told apart when they are read."""
    table = _known(beginning, _TABLES)
    if table is not None:
        return table
    text = beginning.removeprefix(_MARK).lstrip()
    if not text:
        return ".jsonl"
    return ".json" if text.startswith((b"{", b"[")) else ".csv"


def _known(beginning: bytes, marks: dict[bytes, str]) -> str | None:
    return next((ending for mark, ending in marks.items() if beginning.startswith(mark)), None)
