"""JSON objects and checksums."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tercet.index.files.content import sha256_of


def test_checksum_is_sha256(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"tercet")
    assert sha256_of(path) == hashlib.sha256(b"tercet").hexdigest()
