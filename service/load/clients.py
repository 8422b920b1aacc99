"""Whose request it is that work is done for, and what of a collection it is meant for."""

from __future__ import annotations

from contextvars import ContextVar

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""A key, or the address of who has none; the entrance sets it, for the task of each request, too."""
PART: ContextVar[str | None] = ContextVar("part", default=None)
"""The tag of the part of a collection over shards that a router takes this server's for; None of others."""
PART_HEADER = "Tercet-Part"
SHARE = 4
"""One client may have so many times what is left free for all.

So one alone gets four fifths of the whole, two that take what they can get four ninths each, and a part is
always free for whoever comes next. These are the dynamic thresholds of Choudhury and Hahne (IEEE/ACM
Transactions on Networking 6(2), 1998), which need no list of who is there.
"""
