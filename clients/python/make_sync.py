"""Makes the synchronous client from the asynchronous one.

usage: python clients/python/make_sync.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "src" / "tercet_client"
SOURCE, TARGET = PACKAGE / "async_client.py", PACKAGE / "client.py"
REPLACED = [
    (
        r"The asynchronous client\. `client\.py` is made from it by `clients/python/make_sync\.py`\.",
        "The synchronous client, made of the asynchronous one by `clients/python/make_sync.py`.",
    ),
    (r"import asyncio\nimport json\nimport uuid", "import json\nimport time\nimport uuid"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"Safe for many tasks at once", "Safe for many threads at once"),
    (r"httpx\.AsyncClient", "httpx.Client"),
    (r"\bAsyncClient\b", "Client"),
    (r"AsyncBaseTransport", "BaseTransport"),
    (r"AsyncItera(tor|ble)", r"Itera\1"),
    (r"aiter_lines", "iter_lines"),
    (r"aread", "read"),
    (r"\basync for ", "for "),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"aclose", "close"),
    (r"\basync def ", "def "),
    (r"\basync with ", "with "),
    (r"\bawait ", ""),
]


def sync_text(text: str) -> str:
    """The synchronous module for an asynchronous one."""
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text)
    return text


def main() -> None:
    """Writes the module, or says that it differs."""
    text = sync_text(SOURCE.read_text("utf-8"))
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, "utf-8")
    elif not TARGET.exists() or TARGET.read_text("utf-8") != text:
        sys.exit(f"{TARGET} differs from {SOURCE}; run python clients/python/make_sync.py")


if __name__ == "__main__":
    main()
