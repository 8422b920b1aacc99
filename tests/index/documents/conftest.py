"""Columns of documents in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tercet.index.documents.fields import Column, column_of
from tercet.index.documents.metadata import FieldType

MakeColumns = Callable[[Mapping[str, FieldType], Sequence[Mapping[str, list[Any]]]], dict[str, Column]]


@pytest.fixture(scope="session")
def make_columns() -> MakeColumns:
    """The column of each field, from the values of each document."""

    def make(
        fields: Mapping[str, FieldType], documents: Sequence[Mapping[str, list[Any]]]
    ) -> dict[str, Column]:
        return {
            name: column_of(kind, [document.get(name, []) for document in documents])
            for name, kind in fields.items()
        }

    return make
