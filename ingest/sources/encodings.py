"""The encoding of a text of which nobody said it."""

from __future__ import annotations

import codecs

from charset_normalizer import from_bytes

SAMPLE_BYTES = 2**20
# Of files that are not UTF-8: those of Windows, which cover other ones of the same languages, and EUC-JP.
ENCODINGS = (
    *("cp949", "cp932", "euc_jp", "gb18030", "big5", "cp874"),
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1258"),
)
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ISO_2022_JP = (b"\x1b$B", b"\x1b$@")  # where Japanese begins, within ASCII


def found_encoding(sample: bytes) -> str:
    """The encoding of a file that begins so: by its mark, or UTF-8 where it is that, or the likeliest."""
    if sample.isascii() and any(mark in sample for mark in _ISO_2022_JP):
        return "iso2022_jp"
    for mark, encoding in _MARKS.items():
        if sample.startswith(mark):
            return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # the last character may be cut
    except UnicodeDecodeError:
        return _likeliest(sample)
    return "utf-8"


def _likeliest(sample: bytes) -> str:
    """Of ENCODINGS; UTF-8, which will be refused where the first bad byte is, if it is none of them."""
    matches = from_bytes(sample, cp_isolation=list(ENCODINGS))
    best = matches.best()
    if best is None:
        return "utf-8"
    # Few words of western Europe may be those of its centre as well: then it is what is commoner.
    alike = {match.encoding for match in matches if match.coherence == best.coherence}
    western = "cp1252" in alike or sample.decode("cp1252", "replace") == str(best)
    return "cp1252" if best.encoding == "cp1250" and western else best.encoding
