"""A pytest plugin for the packages of frameworks: the server that `make outside` runs, and empty collections.

TERCET_URL is the server's address and TERCET_CLIENT_KEY a key that may write.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator

import pytest
from tercet_client import Client, NotFoundError


@pytest.fixture(scope="session")
def url() -> str:
    """The address of a running server."""
    try:
        return os.environ["TERCET_URL"]
    except KeyError:
        raise pytest.UsageError("TERCET_URL is not set; run these tests with: make outside") from None


@pytest.fixture(scope="session")
def key() -> str | None:
    """A key that may write, where the server has keys."""
    return os.environ.get("TERCET_CLIENT_KEY")


@pytest.fixture(scope="session")
def client(url: str, key: str | None) -> Iterator[Client]:
    with Client(url, key=key) as client:
        yield client


@pytest.fixture
def collection(client: Client) -> Iterator[str]:
    """A name that no collection has; what the test makes under it is deleted."""
    name = f"t{uuid.uuid4().hex}"
    yield name
    with contextlib.suppress(NotFoundError):
        client.delete_collection(name)
