"""The encoding of a text of which nobody said it."""

from __future__ import annotations

import codecs
from collections import Counter

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
