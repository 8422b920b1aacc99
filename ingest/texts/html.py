"""HTML as readable text: without scripts, styles and navigation, its blocks on lines of their own."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tercet.ingest.passages.outline import Heading, Outline, Slugs
from tercet.ingest.sources.encodings import SAMPLE_BYTES, detected_encoding
from tercet.ingest.texts.html_boilerplate import remove_boilerplate
from tercet.ingest.texts.html_nesting import with_bounded_depth
from tercet.ingest.texts.parsed import ParsedText, UnreadableFileError

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "center", "details", "dl", "fieldset", "figure", "form"),
    *("header", "hr", "main", "ol", "p", "pre", "section", "table", "ul"),
}
_LINES = {"br", "caption", "dd", "div", "dt", "figcaption", "li", "option", "summary", "tr"}
_CELLS = {"td", "th"}
_BLANKS = re.compile(r"\s+")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_CHARSET_BYTES = 4096
_PERMALINKS = ("¶", "#", "§", "")


def parse_html(content: bytes, encoding: str | None) -> ParsedText:
    """The text of a page. encoding: as it was given; by default what the page says, or what is found.

    Of a page with one `main`, or else with one `article`, it is that alone. Raises UnreadableFileError.
    """
    tree = LexborHTMLParser(with_bounded_depth(_decoded(content, encoding)))
    title = tree.css_first("title")
    said = "" if title is None else _plain(title)
    remove_boilerplate(tree)
    for selector in ("main", "[role=main]", "article"):
        nodes = tree.css(selector)
        if len(nodes) == 1:
            break
    root = nodes[0] if len(nodes) == 1 else tree.body
    writer = _Writer()
    if root is not None:
        _write(root, writer)
    text = writer.text()
    first = tree.css("h1")
    if not said and len(first) == 1:
        said = _plain(first[0])
    return ParsedText(text, said or None, {}, Outline(tuple(writer.headings)))


def _decoded(content: bytes, encoding: str | None) -> str:
    named = _CHARSET.search(content[:_CHARSET_BYTES])
    detected = detected_encoding(content[:SAMPLE_BYTES])
    if encoding is None and named is not None and detected == "utf-8":
        # Pages say UTF-8 of what was converted since, too: what is valid UTF-8 is hardly ever anything else.
        encoding = detected if not content.isascii() else None
    elif encoding is None and named is not None:
        encoding = named[1].decode("ascii", "replace")
    try:
        return content.decode(encoding or detected, "replace")
    except LookupError as error:
        if named is not None and encoding == named[1].decode("ascii", "replace"):
            return content.decode(detected, "replace")
        raise UnreadableFileError(f"the encoding {encoding!r:.80} is not known (--encoding)") from error


class _Writer:
    """Text in blocks; `headings` are where they came to be."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self._slugs = Slugs()
        self._parts: list[str] = []
        self._length = 0
        self._breaks = 0
        self._blank = False
        self._begins = ""

    def text(self) -> str:
        return "".join(self._parts)

    def line(self, breaks: int = 1) -> None:
        """What follows begins a line, or after a blank one."""
        self._breaks, self._blank = max(self._breaks, breaks), False

    def begin(self, mark: str) -> None:
        """What follows begins with this."""
        self._begins = mark

    def words(self, text: str) -> None:
        """Text in which any white space is a blank."""
        plain = _BLANKS.sub(" ", text)
        if plain == " " or not plain:
            self._blank = self._blank or bool(plain)
            return
        self._blank = self._blank or plain[0] == " "
        self._append(plain.strip(" "))
        self._blank = plain[-1] == " "

    def verbatim(self, text: str) -> None:
        """Text as it is."""
        if text.strip():
            self._blank = False
            self._append(text.strip("\n"))

    def heading(self, level: int, title: str, anchor: str | None) -> None:
        """A heading on a line of its own."""
        self.line(2)
        self._append(title)
        slug = self._slugs.distinct(anchor) if anchor else self._slugs.of(title)
        start = self._length - len(title)
        self.headings.append(Heading(start, self._length, level, title, slug, anchor))
        self.line(2)

    def _append(self, text: str) -> None:
        if self._parts:
            self._add("\n" * self._breaks if self._breaks else " " * self._blank)
        self._breaks, self._blank = 0, False
        self._add(self._begins)
        self._begins = ""
        self._add(text)

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def _write(root: LexborNode, writer: _Writer) -> None:
    """Walks the tree by hand: pages nest deeper than Python calls may."""
    node: LexborNode | None = root
    entered = True
    while node is not None:
        if entered:
            inside = _enter(node, writer)
            if inside is not None:
                node = inside
                continue
        _leave(node, writer)
        if node.mem_id == root.mem_id:
            return
        following = node.next
        entered = following is not None
        node = following if entered else node.parent


def _enter(node: LexborNode, writer: _Writer) -> LexborNode | None:
    """Writes what a node begins with; its first child where what is inside is written, too."""
    tag = node.tag
    if node.is_text_node:
        writer.words(node.text_content or "")
    elif tag in _HEADINGS:
        title = _plain(node)
        if title:
            writer.heading(int(str(tag)[1]), title, _anchor(node))
    elif tag == "pre":
        writer.line(2)
        writer.verbatim(node.text())
    else:
        _begin(node, writer)
        return node.child
    return None


def _begin(node: LexborNode, writer: _Writer) -> None:
    tag, parent = node.tag, node.parent
    if tag in _BLOCKS:
        writer.line(1 if parent is not None and parent.tag in ("li", "dd") else 2)
    elif tag in _LINES:
        writer.line()
    if tag == "li":
        writer.begin("- ")
    elif tag in _CELLS and _has_cell_before(node):
        writer.words(" | ")


def _leave(node: LexborNode, writer: _Writer) -> None:
    if node.tag in _BLOCKS:
        writer.line(2 if node.parent is None or node.parent.tag not in ("li", "dd") else 1)
    elif node.tag in _LINES and node.tag != "br":
        writer.line()


def _has_cell_before(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and before.tag not in _CELLS:
        before = before.prev
    return before is not None


def _anchor(heading: LexborNode) -> str | None:
    """The id of a heading, or of what it is the first of (Sphinx), or of an empty link in it."""
    parent = heading.parent
    inside = heading.css_first("[id], a[name]")
    for node in (
        heading,
        inside,
        parent if parent is not None and parent.tag in ("section", "div") else None,
    ):
        if node is not None:
            anchor = node.attributes.get("id") or node.attributes.get("name")
            if anchor and (node is not parent or _is_first(heading)):
                return anchor
    return None


def _is_first(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and before.is_text_node and not (before.text_content or "").strip():
        before = before.prev
    return before is None


def _plain(node: LexborNode) -> str:
    """The words of a node on one line, without the mark that links to a heading."""
    words = " ".join(node.text().split())
    for link in node.css("a"):
        mark = (link.text() or "").strip()
        if mark in _PERMALINKS and mark:
            words = words.removesuffix(mark).removeprefix(mark).strip()
    return words
