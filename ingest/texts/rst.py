"""The headings of reStructuredText: lines with a row of marks below them, or also above."""

from __future__ import annotations

import re

from tercet.ingest.passages.outline import Heading, Slugs

DEEPEST = 6
_HEADING = re.compile(
    r"^(?:(?P<over>(?P<mark>[=`:'\"~^_*+#<>.-])(?P=mark){2,})[ \t]*\n[ \t]*)?"
    r"(?P<title>\w[^\n]*|[^\w\s][^\n]*\w[^\n]*)\n"
    r"(?P<under>(?P<last>[=`:'\"~^_*+#<>.-])(?P=last){2,})[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_NOT_IN_IDS = re.compile(r"[^a-z0-9]+")  # as Docutils makes them
_ROLE = re.compile(r":[\w.+-]+:(?=`)|[`*]")


def rst_headings(text: str) -> tuple[Heading, ...]:
    """The headings in order; of each kind of mark the first one gives the level."""
    slugs, styles, headings = Slugs(), list[str](), list[Heading]()
    for match in _HEADING.finditer(text):
        over, under = match["over"], match["under"]
        written = match["title"].rstrip()
        if len(under) < len(written) or (over and over != under) or not _begins(text, match.start()):
            continue
        style = f"{match['last']}{'over' if over else ''}"
        if style not in styles:
            styles.append(style)
        title = _ROLE.sub("", written)
        anchor = _NOT_IN_IDS.sub("-", title.lower()).strip("-")
        slug = slugs.distinct(anchor) if anchor else slugs.of(title)
        level = min(styles.index(style) + 1, DEEPEST)
        headings.append(Heading(match.start(), match.end(), level, title, slug, slug if anchor else None))
    return tuple(headings)


def _begins(text: str, start: int) -> bool:
    """Whether a blank line or nothing is before a place."""
    return not text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start].strip()
