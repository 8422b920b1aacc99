"""PDF files, small and large, for the tests of texts."""

import zlib
from collections.abc import Callable

import pytest

from tests.pdf_files import pdf_of

MakePdf = Callable[..., bytes]


@pytest.fixture(scope="session")
def make_pdf() -> MakePdf:
    return pdf_of


@pytest.fixture(scope="session")
def pdf_bomb() -> bytes:
    """A page of 1 MB whose content takes 900 MB, and more while it is read."""
    packer, block = zlib.compressobj(9), b"BT /F1 1 Tf (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj ET " * 2**14
    return pdf_of(b"".join([packer.compress(block) for _ in range(1000)] + [packer.flush()]))
