"""Lists page by page: so many behind the last of the page before; whole where nothing is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Query

LARGEST, USUAL = 1000, 100

Item = TypeVar("Item")
Next = dict[str, str | None]
"""What an answer has beside a page: `next`, which is `after` of the following one; beside all, nothing."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """What is asked for of a list: the items behind the one called `after`, at most `limit`."""

    after: str | None = None
    limit: int | None = None

    def of(self, items: Sequence[Item], name: Callable[[Item], str]) -> tuple[Sequence[Item], Next]:
        """The first of the items that follow `after`. name: by which an item is called."""
        if self.after is None and self.limit is None:
            return items, {}
        shown = items[: USUAL if self.limit is None else self.limit]
        return shown, {"next": name(shown[-1]) if len(shown) < len(items) else None}


async def _page(
    limit: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="So many at most; 100 where `after` is given.")
    ] = None,
    after: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=200,
            description="`next` of the page before. Without both, all are listed.",
        ),
    ] = None,
) -> ListPage:
    return ListPage(after, limit)


Paged = Annotated[ListPage, Depends(_page)]
