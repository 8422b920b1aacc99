"""What of a page is no text of its own: scripts, navigation, and banners that ask about cookies."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

LEFT_OUT = (
    "script, style, noscript, template, svg, math annotation, iframe, object, canvas, nav, footer, "
    "button, select, [hidden], [role=navigation], [role=search], [role=banner], [role=contentinfo], "
    "a.headerlink, a.anchor, a.anchorjs-link, "
    "div.sphinxsidebar, div.related, div.footer, "  # of Sphinx before it had elements for these
    ".mw-editsection, .mw-jump-link, #toc, .navbox, .catlinks, .printfooter, "  # of MediaWiki
    ".topNav, .bottomNav, .subNav, .skipNav, .fixedNav, "  # of Javadoc
    "#onetrust-consent-sdk, #onetrust-banner-sdk, #CybotCookiebotDialog, #usercentrics-root, "
    "#didomi-host, #cookie-law-info-bar, .cc-window, .osano-cm-window"
)
_DIALOGS = "dialog, [role=dialog], [role=alertdialog], [aria-modal=true]"
_COOKIES = re.compile("cookie|쿠키|クッキー", re.IGNORECASE)
_NAMED = "div[id], div[class], aside[id], aside[class], section[id], section[class]"
_BANNER = re.compile(
    r"\b(?:cookies?|gdpr|consent)[-_]*(?:accept\w*|alert|banner|bar|consent|dialog|disclaimer|message|modal|"
    r"notice|notification|overlay|popup|prompt|warning)\b",
    re.IGNORECASE,
)
_CONTENT = ("main", "article")
_LONGEST_BANNER = 3000  # characters


def remove_boilerplate(tree: LexborHTMLParser) -> None:
    """Takes what is no text of its own out of a page."""
    for node in tree.css(LEFT_OUT):
        node.decompose()
    for node in tree.css(_DIALOGS):
        if _COOKIES.search(node.text()):
            node.decompose()
    banners = [node for node in tree.css(_NAMED) if _is_banner(node)]
    for node in banners:
        node.decompose()


def _is_banner(node: LexborNode) -> bool:
    """Whether a part of a page beside its content is named as banners are; sections of a text may be, too."""
    names = f"{node.attributes.get('id') or ''} {node.attributes.get('class') or ''}"
    if _BANNER.search(names) is None or len(node.text()) > _LONGEST_BANNER:
        return False
    above = node.parent
    while above is not None and above.tag not in _CONTENT and above.attributes.get("role") != "main":
        above = above.parent
    return above is None
