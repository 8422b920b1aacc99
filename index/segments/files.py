"""The files of a segment: its arrays, one file each or all in one, and beside them what FAISS wrote.

A small segment's arrays are packed: to force each of some forty files to the disk, and to hold it open, costs
more than what is in them. Those of a large one stay apart, where they are written once.
"""

from __future__ import annotations

from pathlib import Path

from tercet.index.catalog.manifest import FileEntry, SegmentEntry
from tercet.index.errors import damaged
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.arrays import ArraySource
from tercet.index.files.content import NO_FILES, missing, sha256_of
from tercet.index.files.packed_arrays import PackedArrays, write_packed

PACKED_FILE = "arrays.safetensors"
PACKED_BYTES = 64 * 2**20  # of values; packing copies them once more


def pack_small(arrays: ArrayFolder) -> None:
    """Puts the arrays of a segment that is being written into one file, where they are small."""
    written = {name: arrays.written(name) for name in arrays.names()}
    if sum(array.nbytes for array in written.values()) <= PACKED_BYTES:
        write_packed(arrays.folder / PACKED_FILE, written)
        for name in written:
            arrays.remove(name)


def open_arrays(folder: Path, entry: SegmentEntry) -> ArraySource:
    """The arrays of a published segment. Raises DamagedIndexError naming the file."""
    return PackedArrays(folder / PACKED_FILE) if PACKED_FILE in entry.files else ArrayFolder(folder)


def check_files(folder: Path, entry: SegmentEntry) -> None:
    """Raises DamagedIndexError, naming the file, where one is missing or of another size, or a graph altered.

    Checksums are left to `verify`, except for the graph that FAISS parses: its reader trusts it.
    """
    for name, file in entry.files.items():
        check_file(folder / name, file, content=name.endswith(".faiss"))


def check_file(path: Path, file: FileEntry, *, content: bool) -> None:
    """Raises DamagedIndexError where the file is missing or of another size, or for its content, of another
    checksum.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise missing(path) from error
    except OSError as error:
        if error.errno in NO_FILES:
            raise damaged(path, "is no file") from error
        raise
    if size != file.size_bytes:
        raise damaged(path, f"has {size} bytes, but was published with {file.size_bytes}")
    if content and sha256_of(path) != file.sha256:
        raise damaged(path, "does not have the checksum it was published with")
