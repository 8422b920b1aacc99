"""Names that columns usually have, and which of them a source has."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

from tercet.ingest.sources.conversations import CONVERSATIONS
from tercet.ingest.sources.unclear_columns import Problem

# The first of these that a source has, in any case; of texts and ids beyond the first names one may be there.
IDS = ("id", "_id", "doc_id", "docid", "pid", "번호")
TEXTS = (
    *("text", "contents", "content", "body", "page_content", "passage", "document"),
    *("본문", "내용", "正文", "内容", "內容", "本文"),
    "context",  # of data sets of questions; where another is there, it is what is said around that
)
TITLES = ("title", "name", "제목", "标题", "標題", "タイトル")


def conversation_path(names: Sequence[str]) -> str | None:
    """Where the texts of a source of conversations are; None where it has texts of a usual name."""
    if usual_names(names, TEXTS):
        return None
    return next((path for name, path in CONVERSATIONS.items() if name in names), None)


def known_name(names: Sequence[str], usual: Sequence[str], firsts: int, flag: str) -> str | Problem:
    """The usual name that is among those of a source, the first of all where it has no columns at all; or why
    it is unclear: several others are there, or none.

    firsts: how many of the usual ones go before all others.
    """
    candidates = usual_names(names, usual)
    if len(candidates) > 1:
        candidates = [name for name in candidates if name.lower() != TEXTS[-1]]
    if candidates and candidates[0].lower() not in usual[:firsts] and len(candidates) > 1:
        return Problem(f"{' and '.join(map(repr, candidates))} may be meant", f"name one with {flag}")
    if not candidates and names:
        others = ", or give --generate-ids" if flag == "--id-field" else ""
        return Problem(f"none of {', '.join(usual)} is there", f"name one with {flag}{others}")
    return candidates[0] if candidates else usual[0]


def usual_names(names: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The names of a source that are usual ones, in whatever case and Unicode form, in their order."""
    by_name = {normalize("NFC", name).lower(): name for name in reversed(names)}
    return [name if name in names else by_name[name] for name in usual if name in by_name]
