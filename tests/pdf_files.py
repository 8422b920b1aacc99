"""PDF files made byte by byte."""


def _object(content: bytes, more: bytes = b"") -> bytes:
    return b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(content), more, content)


def pdf_of(*pages: list[str] | bytes, title: str | None = None) -> bytes:
    """The bytes of a PDF file. A page is its lines, or a packed content stream."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, page in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * number)
        )
        if isinstance(page, bytes):
            objects.append(_object(page, b" /Filter /FlateDecode"))
        else:
            lines = " ".join(f"({line}) Tj T*" for line in page)
            objects.append(_object(f"BT /F1 12 Tf 72 720 Td 14 TL {lines} ET".encode()))
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
