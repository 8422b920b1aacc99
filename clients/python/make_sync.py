"""Makes the synchronous client from the asynchronous one, and the collection of `tercet.open` with it.

usage: python clients/python/make_sync.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "src" / "tercet_client"
EMBEDDED = Path(__file__).resolve().parents[2] / "embedded"
# What is made → what it is made of. The package `tercet` does not need this one, so it has files of its own.
MADE = {
    PACKAGE / "client.py": PACKAGE / "async_client.py",
    PACKAGE / "connection.py": PACKAGE / "async_connection.py",
    PACKAGE / "documents.py": PACKAGE / "async_documents.py",
    PACKAGE / "collection.py": PACKAGE / "async_collection.py",
    EMBEDDED / "collection.py": PACKAGE / "async_collection.py",
    EMBEDDED / "records.py": PACKAGE / "records.py",
}
REPLACED = [
    (
        r"The asynchronous client\. `client\.py` is made from it by `clients/python/make_sync\.py`\.",
        "The synchronous client, made of the asynchronous one by `clients/python/make_sync.py`.",
    ),
    (
        r"The connection to a server of the asynchronous client\. `connection\.py` is made from it by\n"
        r"`clients/python/make_sync\.py`\.\n",
        "The connection to a server of the synchronous client, made of that of the asynchronous one by\n"
        "`clients/python/make_sync.py`.\n",
    ),
    (
        r"Documents by the asynchronous client\. `documents\.py` is made from it by "
        r"`clients/python/make_sync\.py`\.",
        "Documents by the synchronous client, made of the asynchronous one by `clients/python/make_sync.py`.",
    ),
    (
        r"`collection\.py`, and the same two files of the package `tercet`, are made by "
        r"`clients/python/make_sync\.py`\.",
        "Made of the asynchronous one by `clients/python/make_sync.py`.",
    ),
    (r"import asyncio\n", "import time\n"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"Safe for many tasks at once", "Safe for many threads at once"),
    (r"httpx\.AsyncClient", "httpx.Client"),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsync(Collection|Connection|Documents)\b", r"\1"),
    (r"\basync_(client|collection|connection|documents)\b", r"\1"),
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
    (r"\basync for ", "for "),
    (r"\(await (self\._client\.collection\(self\.name\))\)", r"\1"),
    (r"\bawait ", ""),
]
# Of the package `tercet`: a store is asked in the place of a client.
EMBEDDED_REPLACED = [
    (r"from tercet_client\.client import Client", "from tercet.embedded.store import Store"),
    (r"tercet_client\.", "tercet.embedded."),
    (r"\bClient\b", "Store"),
    (r"client\.collection\(name\)", "store.collection(name)"),
    (r"_client\b", "_store"),
    (r"\bclient\b(?!s)", "store"),
]


def made_text(target: Path, text: str) -> str:
    """What a file is to hold, made of the text of another."""
    for pattern, replacement in REPLACED + (EMBEDDED_REPLACED if target.parent == EMBEDDED else []):
        text = re.sub(pattern, replacement, text)
    return text


def main() -> None:
    """Writes the modules, or says which differs."""
    for target, source in MADE.items():
        text = made_text(target, source.read_text("utf-8"))
        if "--check" not in sys.argv[1:]:
            target.write_text(text, "utf-8")
        elif not target.exists() or target.read_text("utf-8") != text:
            sys.exit(f"{target} differs from {source}; run python clients/python/make_sync.py")


if __name__ == "__main__":
    main()
