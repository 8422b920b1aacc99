"""The stored effort of dense searches."""

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import DenseOptions
from tercet.index.catalog.effort import DenseEffort
from tercet.index.errors import DamagedIndexError

EFFORT = DenseEffort(640, 32, "hnsw", "000007", 0.98, 0.983, 200, 150, "documents")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    EFFORT.write(tmp_path / "effort.json")
    assert DenseEffort.read(tmp_path / "effort.json") == EFFORT
    assert EFFORT.options == DenseOptions(640, 32)
    with pytest.raises(FileNotFoundError):
        DenseEffort.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 2}, "format version 2"),
        ({"more": 1}, r'unknown: \["more"\]; use the release that wrote it where that is newer'),
        ({"ef_search": 0}, "ef_search is 0"),
        ({"nprobe": 100_001}, "from 1 to 100000"),
        ({"k": True}, "k is true"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"kind": "auto"}, 'kind is "auto"; it is one of flat, hnsw, ivfpq, ivfrabitq'),
        ({"source": "guess"}, 'source is "guess"'),
        ({"snapshot": "../etc"}, 'snapshot "../etc" is not of the form'),
    ],
)
def test_another_value_is_named_with_the_remedy(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "effort.json"
    EFFORT.write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DamagedIndexError, match=message) as raised:
        DenseEffort.read(path)
    assert "--reset" in str(raised.value)
