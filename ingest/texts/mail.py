"""A mail that was saved as text: its subject is its title."""

from __future__ import annotations

import re
from email.header import decode_header, make_header

_HEADER = re.compile(r"(?:[A-Z][\w-]*:[^\n]*\n(?:[ \t]+\S[^\n]*\n)*)+(?=\n|\Z)")
_NAMES = re.compile(r"^(?:From|To|Date|Sent|Message-I[dD]|Received|Return-Path):", re.MULTILINE)
_SUBJECT = re.compile(r"^Subject:[ \t]*([^\n]*(?:\n[ \t]+\S[^\n]*)*)", re.MULTILINE)


def subject_of(text: str) -> str | None:
    """The subject of a text that begins as a mail does; None of any other."""
    header = _HEADER.match(text)
    subject = None if header is None or _NAMES.search(header[0]) is None else _SUBJECT.search(header[0])
    if subject is None:
        return None
    try:
        decoded = str(make_header(decode_header(" ".join(subject[1].split()))))
    except (LookupError, ValueError):
        decoded = subject[1]
    return " ".join(decoded.split()) or None
