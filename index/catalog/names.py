"""What collections, their fields and their adapters may be called."""

from __future__ import annotations

import re

from tercet.index.errors import InvalidNameError
from tercet.index.wording import shown

MAX_FIELD_NAME = 64  # characters
MAX_TITLE = 200  # characters
COLLECTION_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# Two are a pair that a router chose, three a hypernetwork with a language and a task.
ADAPTER_NAME = re.compile(rf"{COLLECTION_NAME.pattern}(\+{COLLECTION_NAME.pattern}){{0,2}}")


def check_collection_name(name: str) -> str:
    """Returns the name. Raises InvalidNameError where it does not match the pattern."""
    if not isinstance(name, str) or not COLLECTION_NAME.fullmatch(name):
        raise InvalidNameError(
            f"collection name {str(name)[:80]!r} does not match [a-z0-9][a-z0-9_-]{{0,63}}; choose another"
        )
    return name


def is_field_name(name: object) -> bool:
    """Whether a field may be called so: text of 1 to 64 characters that show, without blanks around it."""
    return (
        isinstance(name, str)
        and 1 <= len(name) <= MAX_FIELD_NAME
        and name.isprintable()
        and name == name.strip()
    )


def check_field_name(name: str) -> str:
    """Returns the name. Raises InvalidNameError where no field may be called so."""
    if not is_field_name(name):
        raise InvalidNameError(
            f"field name {str(name)[:80]!r} is not 1 to {MAX_FIELD_NAME} characters that show, without "
            "blanks around them; rename it"
        )
    return name


def check_title(title: str) -> str:
    """Returns the title, any text of 1 to 200 characters that show. Raises InvalidNameError for another."""
    if not isinstance(title, str) or not 1 <= len(title) <= MAX_TITLE or not title.isprintable():
        raise InvalidNameError(f"title is {shown(title)}; use 1 to {MAX_TITLE} characters that show")
    return title
