"""MDX, Markdown with JavaScript between its paragraphs: lines that import and export are no text."""

from __future__ import annotations

import re

_IMPORT = (
    r"""import\s+(?:(?:type\s+)?[\w*{$][^'"]*?\sfrom\s+)?(["'])[^'"]+\1\s*;?\s*$"""
    r"|import\s+(?:\w+\s*,\s*)?\{\s*$"
)
_EXPORT = r"export\s+(?:default\b|(?:const|let|var|function|class|async)\s|[{*])"
_IMPORTS = re.compile(_IMPORT)
_MODULES = re.compile(f"{_IMPORT}|{_EXPORT}")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_STATEMENT_END = (";", "'", '"', "}", ")")


def without_modules(text: str, *, exports: bool) -> str:
    """Markdown without its lines of imports, which stand after a blank line and outside of blocks of code.

    exports: and of exports, which begin as a sentence may.
    """
    module = _MODULES if exports else _IMPORTS
    kept: list[str] = []
    fence, inside, may_begin, depth = "", False, True, 0
    for line in text.split("\n"):
        if not fence and not inside and may_begin and module.match(line):
            inside, depth = True, 0
        if inside:
            depth += sum(map(line.count, "{([")) - sum(map(line.count, "})]"))
            inside = depth > 0 or not (line.rstrip().endswith(_STATEMENT_END) or not line.strip())
            continue
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        may_begin = not line.strip()
        kept.append(line)
    return "\n".join(kept)
