"""An example answer of each operation, as a server with five documents and a tiny encoder gave it.

Vectors are shorter than those of an encoder that is of use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

JSON = "application/json"
TEXT = "text/plain"


def with_examples(description: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI description with an example of each answer that is JSON, or text alone.

    Examples of routes would lose what is null on their way into the description.
    """
    examples: dict[str, Any] = orjson.loads(Path(__file__).with_suffix(".json").read_bytes())
    for methods in description["paths"].values():
        for operation in methods.values():
            success = min(operation["responses"])
            content = operation["responses"][success].get("content", {})
            if operation["operationId"] in examples:
                content[TEXT if TEXT in content else JSON]["example"] = examples[operation["operationId"]]
    return description
