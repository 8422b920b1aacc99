"""What a build encodes documents with where the encoder is elsewhere: workers over HTTP."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Generator, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from tercet.models.encoder import EncoderInfo
from tercet.models.errors import EncoderUnavailableError
from tercet.models.representations import Int64, Representations
from tercet.models.stream import EncodeRows, Known, Slicing, Watch, encode_windows, window_tokens
from tercet.models.texts.groups import estimated_tokens
from tercet.models.tokenizer import Tokenizer
from tercet.service.encoding.options import TextOptions
from tercet.service.exceptions import OverloadedError
from tercet.service.settings.settings import WorkerAccess
from tercet.service.workers.encoding import RemoteEncoding

PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 2.0

T = TypeVar("T")


class RemoteDocuments:
    """Encoder workers elsewhere, asked from ordinary code: an event loop in a thread talks to them.

    A build lasts long, so workers that are busy or away for a while are waited for.
    """

    def __init__(self, urls: Sequence[str], access: WorkerAccess) -> None:
        """Raises EncoderUnavailableError where no worker can be used."""
        self._calls_at_once = 2 * len(urls)  # they keep the workers busy
        self._adapter: str | None = None
        self._abandoned = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="encoder-workers", daemon=True)
        self._thread.start()
        try:
            self._remote = self._wait(RemoteEncoding.connect(urls, access))
            self._info = self._remote.info
        except BaseException:
            self._end_loop()
            raise

    @property
    def info(self) -> EncoderInfo:
        return self._info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._remote.tokenizer

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """What a name stands for, as `Encoder.resolve_adapter`."""
        return self._remote.resolve_adapter(name, collection)

    def use_adapter(self, adapter: str | None) -> None:
        """From now on texts are encoded with this adapter. Raises as `EncodingService.info_of`."""
        self._info = self._wait(self._remote.info_of(adapter))
        self._adapter = adapter

    def encode(self, texts: Sequence[str]) -> Representations:
        """All three representations, in input order.

        Raises OverloadedError or EncoderUnavailableError where that lasts longer than PATIENCE_SECONDS.
        """
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._wait(self._remote.encode(texts, TextOptions(adapter=self._adapter)))
            except (OverloadedError, EncoderUnavailableError) as error:
                pause = error.retry_after_seconds if isinstance(error, OverloadedError) else PAUSE_SECONDS
                if time.monotonic() + pause > give_up or self._abandoned.wait(pause):
                    raise

    def encode_stream(self, texts: Iterable[str], known: Known, watch: Watch) -> Generator[Representations]:
        """The same of any number of texts, in order, several calls at once."""

        def prepare(window: Sequence[str], _places: Int64) -> tuple[Int64, EncodeRows]:
            lengths = np.array([estimated_tokens(text) for text in window], np.int64)
            return np.minimum(lengths, self._info.max_length), lambda rows: self.encode(
                [window[row] for row in rows.tolist()]
            )

        return encode_windows(
            texts,
            prepare,
            Slicing(window_tokens(self._info)),
            self._calls_at_once,
            known=known,
            watch=watch,
            abandon=self.abandon,
        )

    def abandon(self) -> None:
        """Cancels the requests under way, and ends all waiting for workers; no other call follows."""
        self._abandoned.set()
        self._wait(_cancel_tasks())

    def close(self) -> None:
        """Closes the connections."""
        self._wait(self._remote.close())
        self._end_loop()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_tasks() -> None:
    """Cancels all other tasks of the running loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
