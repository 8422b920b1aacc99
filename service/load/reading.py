"""How a request reads a collection."""

from __future__ import annotations

from dataclasses import dataclass

from tercet.index.documents.filters import Filter
from tercet.service.load.deadlines import NO_DEADLINE, Deadline


@dataclass(frozen=True, slots=True)
class Reading:
    """Until when the answer is of use, and whether it may lack what parts of a divided collection have.

    newest: it has to come from where the collection is written, and not from who follows that.
    may_begin_again: whoever asks begins anew at BegunAgainError. snapshot: the version that is wanted, as an
    answer named it, where one of several servers may have it. filter: outside which nothing is read, so that
    parts of a divided collection that have nothing else need not be asked.
    """

    deadline: Deadline = NO_DEADLINE
    allow_partial: bool = False
    newest: bool = False
    may_begin_again: bool = False
    snapshot: str | None = None
    filter: Filter | None = None


ANY_TIME = Reading()
