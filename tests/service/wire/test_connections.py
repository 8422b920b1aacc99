"""How many connections there may be without a setting."""

import resource
from typing import Any

import pytest

from tercet.service.wire.connections import connections_of_files


@pytest.mark.parametrize(
    ("files", "connections"), [(256, 128), (1, 1), (20_000, 4096), (resource.RLIM_INFINITY, 4096)]
)
def test_half_of_the_open_files_are_left_to_the_index(monkeypatch: Any, files: int, connections: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert connections_of_files() == connections
