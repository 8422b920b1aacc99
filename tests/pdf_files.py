"""PDF files made byte by byte."""

import re
from collections.abc import Sequence


def _object(content: bytes, more: bytes = b"") -> bytes:
    return b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(content), more, content)


def squares(alphabet: str) -> list[bytes]:
    """The objects of a font whose characters are all squares, from 1 on, and stand for those given."""
    count = len(alphabet)
    names = " ".join(f"/c{number}" for number in range(count))
    pairs = " ".join(f"<{code:02x}> <{ord(letter):04x}>" for code, letter in enumerate(alphabet, start=1))
    meaning = (
        "begincmap 1 begincodespacerange <00> <ff> endcodespacerange "
        f"{count} beginbfchar {pairs} endbfchar endcmap"
    )
    return [
        f"<< /Type /Font /Subtype /Type3 /FontBBox [0 -200 1000 800] /FontMatrix [0.001 0 0 0.001 0 0] "
        f"/FirstChar 1 /LastChar {count} /Widths [{'1000 ' * count}] /Resources << >> "
        f"/Encoding << /Differences [1 {names}] >> /ToUnicode @1 "
        f"/CharProcs << {' '.join(f'/c{number} @2' for number in range(count))} >> >>".encode(),
        _object(meaning.encode()),
        _object(b"1000 0 0 -100 900 800 d1 0 -100 900 900 re f"),
    ]


def nameless() -> list[bytes]:
    """The objects of a font that does not say which characters it has."""
    return [
        b"<< /Type /Font /Subtype /Type0 /BaseFont /AAAAAA+Odd /Encoding /Identity-H "
        b"/DescendantFonts [@1] >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /AAAAAA+Odd /FontDescriptor @2 /DW 500 "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
        b"<< /Type /FontDescriptor /FontName /AAAAAA+Odd /Flags 4 /FontBBox [0 -200 1000 900] "
        b"/ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>",
    ]


def pdf_of(*pages: list[str] | bytes, title: str | None = None, font: Sequence[bytes] = ()) -> bytes:
    """The bytes of a PDF file. A page is its lines, or a packed content stream.

    font: the objects of a font called F2, of which `@1` is the second, and so on.
    """
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    place = 4 + 2 * len(pages)
    fonts = b"/F1 3 0 R /F2 %d 0 R" % (place if font else 3)
    for number, page in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << %s >> >> >>" % (5 + 2 * number, fonts)
        )
        if isinstance(page, bytes):
            objects.append(_object(page, b" /Filter /FlateDecode"))
        else:
            lines = " ".join(f"({line}) Tj T*" for line in page)
            objects.append(_object(f"BT /F1 12 Tf 72 720 Td 14 TL {lines} ET".encode()))
    objects += [re.sub(rb"@(\d)", lambda one: b"%d 0 R" % (place + int(one[1])), content) for content in font]
    trailer = b"/Root 1 0 R"
    if title is not None:
        objects.append(f"<< /Title ({title}) >>".encode())
        trailer += b" /Info %d 0 R" % len(objects)
    written, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"trailer << /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, len(written))
    return written + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table) + end
