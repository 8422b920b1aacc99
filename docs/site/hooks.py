"""Pages of the site that lie outside of docs/, and links between them, as MkDocs asks for them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
# Where each page of the repository is on the site; those below docs/ keep their places.
OUTSIDE = {
    "README.md": "index.md",
    "README.ko.md": "ko/index.md",
    "CHANGELOG.md": "changelog.md",
    **{
        f"{folder}/{path.parent.name}/README.md": f"{folder}/{path.parent.name}.md"
        for folder in ("checkpoints", "clients")
        for path in sorted((ROOT / folder).glob("*/README.md"))
    },
}
SOURCES = {page: source for source, page in OUTSIDE.items()}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages from outside."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The page with its links as they are on the site. What is no page of it keeps its name alone."""
    uri = page.file.src_uri
    source = SOURCES.get(uri, f"docs/{uri}")

    def relinked(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target not in OUTSIDE and not target.startswith("docs/"):
            return text
        on_site = OUTSIDE.get(target, target.removeprefix("docs/"))
        return f"[{text}]({posixpath.relpath(on_site, posixpath.dirname(uri) or '.')}{anchor})"

    return LINK.sub(relinked, markdown)
