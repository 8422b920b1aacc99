"""The root of all exceptions of what goes beyond one machine; what messages have of those of libraries."""

from tercet.index.wording import reason_of


class ClusterError(Exception):
    """Any failure beyond one machine; its message names what failed and the remedy."""


def first_line(error: Exception) -> str:
    """Of the message of a library's exception, which may go on for pages; without one, its class."""
    return (reason_of(error).strip().splitlines() or [type(error).__name__])[0][:300]
