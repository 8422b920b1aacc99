"""Filters give the rows that plain Python does, over drawn documents and over many."""

from __future__ import annotations

import operator
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.documents.fields import Column
from tests.index.documents.test_filters import (
    FIELDS,
    columns_of,
    documents,
    matching,
    moments,
    numbers,
    words,
)

# Those that a field of the type holds, or lie between two of them.
limits = {
    "year": st.one_of(
        numbers, st.sampled_from([-2.5, 0.5, 2**63 - 1, -(2**63), 2**53 + 1, -(2.0**53), 5e-324])
    ),
    "price": st.one_of(
        numbers, st.sampled_from([-2.5, 0.5, 2**53, -(2**53), 2.0**60, 1e300, -1e300, 5e-324])
    ),
}


COMPARISONS = ["gt", "gte", "lt", "lte"]


leaves = st.one_of(
    st.builds(lambda v: {"eq": {"tags": v}}, words),
    st.builds(lambda v: {"in": {"tags": v}}, st.lists(words, max_size=3)),
    *(st.builds(lambda v, f=field: {"in": {f: v}}, st.lists(limits[field], max_size=3)) for field in limits),
    st.builds(lambda o, v: {o: {"tags": v}}, st.sampled_from(COMPARISONS), words),
    st.builds(lambda o, v: {o: {"seen": v}}, st.sampled_from([*COMPARISONS, "eq"]), moments),
    *(
        st.builds(lambda o, v, f=field: {o: {f: v}}, st.sampled_from([*COMPARISONS, "eq"]), limits[field])
        for field in limits
    ),
    st.builds(lambda v: {"eq": {"new": v}}, st.booleans()),
    st.builds(lambda v: {"exists": v}, st.sampled_from(sorted(FIELDS))),
)


conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lambda o, parts: {o: parts},
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=8,
)


COMPARE = {"eq": operator.eq, "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}


def moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def matches(condition: dict[str, Any], document: dict[str, Any]) -> bool:
    """The meaning of a filter, in plain Python."""
    operation, operand = next(iter(condition.items()))
    if operation == "and":
        return all(matches(part, document) for part in operand)
    if operation == "or":
        return any(matches(part, document) for part in operand)
    if operation == "not":
        return not matches(operand, document)
    field, wanted = (operand, None) if operation == "exists" else next(iter(operand.items()))
    value = document.get(field, [])
    values = value if isinstance(value, list) else [value]
    if operation == "exists":
        return len(values) > 0
    if field == "seen":
        values = [moment(member) for member in values]
        wanted = [moment(each) for each in wanted] if isinstance(wanted, list) else moment(wanted)
    if operation == "in":
        return any(member in wanted for member in values)
    return any(COMPARE[operation](member, wanted) for member in values)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(condition=conditions, texts=st.lists(documents, min_size=1, max_size=8))
def test_rows_equal_plain_python(
    tmp_path_factory: pytest.TempPathFactory, condition: Any, texts: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("fields")
    columns = columns_of(folder, texts)
    expected = [row for row, document in enumerate(texts) if matches(condition, document)]
    assert matching(columns, condition, len(texts)) == expected
    assert matching(columns, condition, len(texts), folder) == expected


MANY = 5_000


def years_of(document: dict[str, Any]) -> set[int]:
    found = document["year"]
    return set(found) if isinstance(found, list) else {found}


class Many:
    """Enough documents for bitmaps, and for values that few have."""

    def __init__(self, folder: Path, columns: dict[str, Column], texts: list[dict[str, Any]]) -> None:
        self.folder = folder
        self.columns = columns
        self.texts = texts

    def check(self, condition: Any, expected: list[int]) -> None:
        assert matching(self.columns, condition, MANY, self.folder) == expected


@pytest.fixture(scope="module", params=[1, 3], ids=["single", "lists"])
def many(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Many:
    generator = random.Random(3)
    texts: list[dict[str, Any]] = [
        {
            "tags": generator.choices(["ab", "b", f"{row:05}", "시"], [6, 3, 2, 1], k=generator.randrange(4)),
            "year": generator.choice([generator.randrange(-3, 4), generator.randrange(3_000), 2**53]),
            **({"price": generator.gauss(0, 1)} if generator.random() < 0.7 else {}),
            **({"new": generator.random() < 0.02} if generator.random() < 0.9 else {}),
            **({"seen": generator.choice(["2024-01-01", "2025-06-30"])} if generator.random() < 0.5 else {}),
        }
        for row in range(MANY)
    ]
    for each in texts:
        if request.param > 1 and generator.random() < 0.3:
            each["year"] = [generator.randrange(3_000) for _ in range(request.param)]
            each["seen"] = ["2024-01-01", "2025-06-30"]
    folder = tmp_path_factory.mktemp("many")
    return Many(folder, columns_of(folder, texts), texts)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(condition=conditions)
def test_rows_equal_plain_python_where_there_are_many(many: Many, condition: Any) -> None:
    many.check(condition, [row for row, each in enumerate(many.texts) if matches(condition, each)])


@pytest.mark.slow
def test_many_values_are_found_in_few_documents_and_few_in_many(many: Many) -> None:
    for wanted in ([f"{row:05}" for row in range(10_000)], ["00004", "시"]):
        tagged = [row for row, each in enumerate(many.texts) if set(wanted) & set(each["tags"])]
        many.check({"in": {"tags": wanted}}, tagged)
    for years in (list(range(0, 20_000, 2)), [7, 8]):
        dated = [row for row, each in enumerate(many.texts) if years_of(each) & set(years)]
        many.check({"in": {"year": years}}, dated)


def test_of_a_few_documents_all_values_are_compared(many: Many) -> None:
    rare = [row for row, each in enumerate(many.texts) if f"{row:05}" in each["tags"]][:60]
    wanted = {"in": {"tags": [f"{row:05}" for row in rare]}}
    recent = [row for row in rare if any(year >= 1_500 for year in years_of(many.texts[row]))]
    assert 0 < len(recent) < len(rare)
    many.check({"and": [wanted, {"gte": {"year": 1_500}}]}, recent)
