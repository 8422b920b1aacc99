"""Runs the Python examples of a README as they stand, against the server of these tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

WRITTEN = '"http://127.0.0.1:8080"'  # the server that a README names


def run_examples(readme: Path, url: str, key: str | None, names: dict[str, str]) -> dict[str, Any]:
    """The variables after all examples, one after the other.

    names: of collections, as they are written and as they are here. The key, where the server has one, goes
    beside its address.
    """
    found = re.findall(r"^```python\n(.*?)^```", readme.read_text("utf-8"), re.M | re.S)
    code = "\n".join(found)
    here = f'"{url}"' if key is None else f'"{url}", key={key!r}'
    for written, replacement in {WRITTEN: here, **{f'"{a}"': f'"{b}"' for a, b in names.items()}}.items():
        if written not in code:
            raise ValueError(f"the examples of {readme} do not name {written}")
        code = code.replace(written, replacement)
    variables: dict[str, Any] = {"__name__": "__example__"}
    exec(compile(code, str(readme), "exec"), variables)  # noqa: S102 - our own README
    return variables
