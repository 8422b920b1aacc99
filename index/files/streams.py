"""Arrays that grow together: what a writer of one part of a segment adds to."""

from __future__ import annotations

from typing import Protocol


class Stream(Protocol):
    """An array that grows, or several."""

    @property
    def total_bytes(self) -> int:
        """Bytes of the rows so far."""

    def finish(self) -> None:
        """Completes what was added: it can be opened."""

    def close(self) -> None:
        """Abandons it: it cannot be opened."""


class Streams:
    """Several streams, completed and abandoned as one."""

    def __init__(self, *streams: Stream) -> None:
        self._streams = list(streams)

    @property
    def total_bytes(self) -> int:
        return sum(stream.total_bytes for stream in self._streams)

    def finish(self) -> None:
        for stream in self._streams:
            stream.finish()

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
