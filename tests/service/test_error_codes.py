"""The table of codes in the description of the HTTP API, beside those that the source has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tercet.service.error_table import TABLE, TYPES
from tercet.service.exceptions import ForbiddenError, MalformedBodyError, NotFoundError
from tercet.service.invalid_values import TOKEN_IDS

ROOT = Path(__file__).parents[2]
# Which argument of an exception, or of `Failure`, is its code.
PLACES = {
    "BodyEncodingError": 1,
    "ForbiddenError": 1,
    "MalformedBodyError": 1,
    "NotFoundError": 1,
    "InvalidRequestError": 2,
    "Failure": 2,
}
OF_THEIR_OWN = (ForbiddenError, MalformedBodyError, NotFoundError)  # each of these is raised with a code
TABLE_ROW = re.compile(r"^\| (\d{3}) \| `(\w+)` \| (.*) \|$", re.MULTILINE)


def texts_in(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from texts_in(node.body)
        yield from texts_in(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def codes_of_source() -> set[str]:
    found = {code for kind, (_, code) in TABLE.items() if kind not in OF_THEIR_OWN}
    for path in (ROOT / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            place = PLACES.get(node.func.id)
            if place is not None:
                given = [each.value for each in node.keywords if each.arg == "code"]
                given += node.args[place : place + 1]
                found |= {code for each in given for code in texts_in(each)}
    return found | {TOKEN_IDS, "missing_field", "unknown_field"}  # of the checks of bodies


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/http-api.md", "docs/ko/http-api.md"])
def test_the_table_has_every_code_of_the_source(page: str) -> None:
    rows = TABLE_ROW.findall((ROOT / page).read_text())
    assert {int(status): kind for status, kind, _ in rows} == TYPES
    told = {code for _, _, codes in rows for code in re.findall(r"`([a-z0-9_]+)`", codes)}
    assert told == codes_of_source()


def test_each_code_of_an_exception_is_in_the_row_of_its_status() -> None:
    rows = TABLE_ROW.findall((ROOT / "docs/http-api.md").read_text())
    told = {int(status): codes for status, _, codes in rows}
    wrong = [
        code
        for kind, (status, code) in TABLE.items()
        if kind not in OF_THEIR_OWN and f"`{code}`" not in told[status]
    ]
    assert wrong == []
