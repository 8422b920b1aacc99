"""A checkpoint that borrows the heads of another: how the two are named together."""

from __future__ import annotations

MARK = " with heads of "


def named_with_heads(checkpoint: str, heads: str | None) -> str:
    """One name for both, as collections record it; the checkpoint's own without heads."""
    return checkpoint if heads is None else f"{checkpoint}{MARK}{heads}"


def split_heads(checkpoint: str) -> tuple[str, str | None]:
    """The checkpoint, and whose heads it borrows, of a name by `named_with_heads`."""
    own, _, heads = checkpoint.partition(MARK)
    return own, heads or None
