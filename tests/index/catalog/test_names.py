"""Names of collections are no paths."""

from __future__ import annotations

from typing import Any

import pytest

from tercet.index.catalog.names import check_collection_name
from tercet.index.errors import InvalidNameError


@pytest.mark.parametrize("name", ["a", "0", "demo-1_x", "a" * 64])
def test_good_names(name: str) -> None:
    assert check_collection_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "A",
        "-a",
        "_a",
        "a" * 65,
        "a/b",
        "../a",
        "..",
        ".",
        "a.b",
        "a\n",
        "a\x00",
        "é",
        "a b",
        "~",
        "a\\b",
        3,
        None,
    ],
)
def test_path_like_and_other_names_are_refused(name: Any) -> None:
    with pytest.raises(InvalidNameError, match="does not match"):
        check_collection_name(name)
