"""The encoding of a text of which nobody said it."""

from __future__ import annotations

import codecs
import io
from collections import Counter
from typing import BinaryIO

from charset_normalizer import from_bytes

SAMPLE_BYTES = 2**20
# Of files that are not UTF-8: those of Windows, which cover other ones of the same languages, and EUC-JP.
ENCODINGS = (
    *("cp949", "cp932", "euc_jp", "gb18030", "big5", "cp874"),
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1258"),
)
# Letters beyond ASCII of a language, and the encoding that has them; of more people's languages first.
_LETTERS = (
    *(("cp1252", letters) for letters in ("áéíñóúü", "àâæçèéêëîïôœùûüÿ", "äöüß", "àáâãçéêíóôõúü")),
    *(("cp1252", letters) for letters in ("àèéìíîòóùú", "äåæéöø", "áäçèéëíïóöü", "àçèéíïòóúü", "äõöšüž")),
    *(("cp1250", letters) for letters in ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž")),
    *(("cp1250", letters) for letters in ("áéíóöőúüű", "čćđšž")),
    ("cp1254", "âçğîıöşûü"),
    ("cp1250", "ăâîşţ"),
    ("cp1252", "áæéíðóöúýþ"),
)
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ISO_2022_JP = (b"\x1b$B", b"\x1b$@")  # where Japanese begins, within ASCII


def detected_encoding(sample: bytes) -> str:
    """The encoding of a file that begins so. As many bytes as SAMPLE_BYTES may end within a character."""
    return encoding_of(io.BytesIO(sample), cut=len(sample) == SAMPLE_BYTES)


def encoding_of(file: BinaryIO, *, cut: bool = False) -> str:
    """The encoding of a file: by its mark, or UTF-8 where it is that, or the likeliest.

    All lines that are not ASCII count, wherever they are, until there are SAMPLE_BYTES of them: a table may
    begin with any number of lines that tell nothing. cut: whether its end is not that of the text.
    """
    lines, size, rest, japanese = list[bytes](), 0, b"", False
    block = file.read(SAMPLE_BYTES)
    for mark, encoding in _MARKS.items():
        if block.startswith(mark):
            return encoding
    while block and size < SAMPLE_BYTES:
        japanese = japanese or any(mark in block for mark in _ISO_2022_JP)
        block = rest + block
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1 or len(block)
        if not block.isascii():
            added = [line for line in block[:end].splitlines() if not line.isascii()]
            lines += added
            size += sum(map(len, added))
        rest, block = block[end:], file.read(SAMPLE_BYTES)
    if not rest.isascii() and size < SAMPLE_BYTES:
        lines.append(rest)
    if not lines:
        return "iso2022_jp" if japanese else "utf-8"
    good = sum(map(_is_utf8, lines[:-1])) + _is_utf8(lines[-1], cut=cut)
    # Some bad bytes among much that is UTF-8 are errors in it, which are then refused where they are.
    return "utf-8" if 2 * good > len(lines) else _likeliest(b"\n".join(lines))


def _is_utf8(line: bytes, *, cut: bool = False) -> bool:
    """Whether a line is UTF-8. cut: whether its last character may be."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(line, final=not cut)
    except UnicodeDecodeError:
        return False
    return True


def _likeliest(sample: bytes) -> str:
    """The likeliest of ENCODINGS; if it is none, UTF-8, which is refused where the first bad byte is."""
    best = from_bytes(sample, cp_isolation=list(ENCODINGS)).best()
    if best is None:
        return "utf-8"
    # Of few words frequencies do not tell these apart, letters do: in cp1252 Turkish has those of Icelandic.
    return _of_letters(sample) if best.encoding in dict(_LETTERS) else best.encoding


def _of_letters(sample: bytes) -> str:
    """The encoding in which the letters beyond ASCII best fit one language, of equals the first."""
    counts = {encoding: Counter(sample.decode(encoding, "replace").lower()) for encoding in dict(_LETTERS)}

    def fit(encoding: str, letters: str) -> int:
        count = counts[encoding]
        beyond = sum(count[letter] for letter in count if letter.isalpha() and not letter.isascii())
        return 2 * sum(count[letter] for letter in letters) - beyond

    return max(_LETTERS, key=lambda alphabet: fit(*alphabet))[0]
