"""Streams of gzip and Zstandard: decoded in bounded pieces, refused where they are damaged."""

import gzip

import pytest

from tercet.service.exceptions import BodyEncodingError
from tercet.service.http.codings import CODINGS, Decoder, encoder_of, zstd

TEXT = b"tea and hot water, " * 1000


def encoded(coding: str, data: bytes = TEXT) -> bytes:
    encoder = encoder_of(coding)
    return encoder.compress(data) + encoder.flush()


def decoded(coding: str, data: bytes, limit: int, packet: int) -> list[bytes]:
    """The pieces of a stream that comes in packets of this size."""
    decoder = Decoder(coding)
    pieces = []
    for start in range(0, len(data), packet):
        pieces.append(decoder.decode(data[start : start + packet], limit))
        while not decoder.hungry:
            pieces.append(decoder.decode(b"", limit))
    decoder.finish()
    return pieces


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("packet", [1, 13, 10_000])
@pytest.mark.parametrize("limit", [1, 500, len(TEXT), len(TEXT) + 1])
def test_pieces_are_bounded_and_join_to_the_whole(coding: str, packet: int, limit: int) -> None:
    pieces = decoded(coding, encoded(coding), limit, packet)
    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= limit


def test_what_other_programs_write_is_read() -> None:
    assert b"".join(decoded("gzip", gzip.compress(TEXT), 1000, 1000)) == TEXT
    assert b"".join(decoded("zstd", zstd.compress(TEXT, level=19), 1000, 1000)) == TEXT
    assert zstd.decompress(encoded("zstd")) == gzip.decompress(encoded("gzip")) == TEXT


@pytest.mark.parametrize("coding", CODINGS)
def test_what_is_no_whole_stream_is_refused(coding: str) -> None:
    whole = encoded(coding)
    for damaged in (whole[:-1], whole[1:], whole + b"x", whole + whole, b"{}", b"\0" * 100):
        with pytest.raises(BodyEncodingError, match=f"not one whole {coding} stream"):
            decoded(coding, damaged, 1 << 20, 1 << 20)


def test_a_stream_that_wants_much_memory_is_refused() -> None:
    modest, greedy = (
        zstd.compress(TEXT * 1000, options={zstd.CompressionParameter.window_log: log}) for log in (23, 24)
    )
    assert sum(map(len, decoded("zstd", modest, 1 << 20, 1 << 20))) == 1000 * len(TEXT)
    with pytest.raises(BodyEncodingError):
        decoded("zstd", greedy, 1 << 20, 1 << 20)
