"""How many files a server may have open, and who gets them."""

from __future__ import annotations

import resource
import sys

import pytest

from tercet.index.errors import TooManyFilesError
from tercet.service.load.open_files import files_of_index, require_open_files


@pytest.mark.parametrize(
    ("allowed", "index"), [(128, 32), (256, 96), (1024, 448), (resource.RLIM_INFINITY, sys.maxsize)]
)
def test_connections_have_half_and_the_process_itself_some(
    monkeypatch: pytest.MonkeyPatch, allowed: int, index: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    require_open_files()
    assert files_of_index() == index


def test_too_few_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (127, 127))
    with pytest.raises(TooManyFilesError, match="may have 127 files open, and a server takes 128 at least"):
        require_open_files()
