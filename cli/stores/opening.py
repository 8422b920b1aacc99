"""The collections that a command works on, by its flags `--url` and `--data`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tercet.cli import options
from tercet.cli.stores.remote import Remote, Url

if TYPE_CHECKING:
    from tercet.cli.stores.local import LocalStore
    from tercet.service.settings.settings import Settings

    Store = LocalStore | Remote


@dataclass(frozen=True, kw_only=True)
class StoreFlags:
    """The flags of commands that need no encoder."""

    url: Url = None
    data: options.Data = None

    def opened(self) -> AbstractContextManager[Store]:
        """Opens what the flags name."""
        return opened_store(self.url, options.settings_from(data=self.data))


@contextmanager
def opened_store(url: str | None, settings: Settings, *, reads: bool = False) -> Iterator[Store]:
    """Opens a server where there is a URL, else the data root of the settings.

    Both have the methods of `tercet_client.Client` that commands need, with its arguments and answers.
    reads: prefers a read-only key.
    """
    if url is not None:
        with Remote(url, settings, reads=reads) as remote:
            yield remote
        return
    from tercet.cli.stores.local import LocalStore

    with LocalStore(settings) as store:
        yield store
