"""What is said of a data root that no server can use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.service.collections.data_root import DataRoot
from tercet.service.exceptions import DataRootError


@pytest.mark.parametrize("below", ["", "below"])
def test_one_that_cannot_be_written_to_is_named(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(
        DataRootError, match=r"file.* cannot be written to \(.*\), and a server keeps its lock"
    ):
        DataRoot(file / below).hold()
