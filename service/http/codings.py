"""The content codings of bodies, gzip and Zstandard: decoding in bounded pieces, and encoding."""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

from tercet.service.exceptions import BodyEncodingError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CODINGS = ("zstd", "gzip")  # the one that is better at the same cost first
GZIP = 16 + zlib.MAX_WBITS  # zlib's number for the format of gzip
# Level 1 of both: on embeddings as JSON higher ones take several times longer and save nearly nothing.
LEVEL = 1
WINDOW_LOG = 23  # RFC 9659: 8 MiB of history are enough for HTTP, so no more memory is given


class Encoder(Protocol):
    """A compressor: zlib's, or that of Zstandard."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def encoder_of(coding: str) -> Encoder:
    """A compressor for one of `CODINGS`."""
    if coding == "gzip":
        return zlib.compressobj(LEVEL, wbits=GZIP)
    return zstd.ZstdCompressor(level=LEVEL)


class Decoder:
    """Decodes one stream. `hungry`: whether it needs more data to give more."""

    def __init__(self, coding: str) -> None:
        """coding: one of `CODINGS`."""
        self._coding = coding
        self._stream: zlib._Decompress | zstd.ZstdDecompressor
        if coding == "gzip":
            self._stream = zlib.decompressobj(GZIP)
        else:
            self._stream = zstd.ZstdDecompressor(
                options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
            )
        self.hungry = True

    def decode(self, data: bytes, limit_bytes: int) -> bytes:
        """What follows, at most so much. Raises BodyEncodingError for what is no stream of this coding."""
        if self._stream.eof and not data:
            return b""
        if self._stream.eof:
            raise self._invalid("something follows its end")
        # That of Zstandard keeps what it had no room for.
        rest = b"" if isinstance(self._stream, zstd.ZstdDecompressor) else self._stream.unconsumed_tail
        try:
            decoded = self._stream.decompress(rest + data, limit_bytes)
        except (zlib.error, zstd.ZstdError) as error:
            raise self._invalid(str(error)) from error
        if self._stream.unused_data:
            raise self._invalid("something follows its end")
        self.hungry = self._stream.eof or len(decoded) < limit_bytes
        return decoded

    def finish(self) -> None:
        """Raises BodyEncodingError where the stream is not whole."""
        if not self._stream.eof:
            raise self._invalid("it ends too early")

    def _invalid(self, reason: str) -> BodyEncodingError:
        return BodyEncodingError(
            f"the body is not one whole {self._coding} stream, as Content-Encoding says: {reason}"
        )
