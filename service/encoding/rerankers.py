"""The re-rankers of one server: each is loaded at its first use and has a queue of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tercet.models.errors import RerankerNotFoundError, RerankerNotServedError, no_such
from tercet.models.representations import Output, Representations, TokenBatch
from tercet.models.rerankers import load_reranker, reranker_names
from tercet.service.encoding.batcher import Batcher
from tercet.service.exceptions import RequestTooLargeError
from tercet.service.load.admission import ANY_WAIT, Admission, Ticket, too_late
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pool, text_pool
from tercet.service.settings.settings import Settings

if TYPE_CHECKING:
    from tercet.models.cross_encoder import CrossEncoder

LOGITS: tuple[Output, ...] = ("dense",)  # a batcher takes a pair's logit as a dense vector of one value


class Reranker:
    """A cross-encoder behind a batcher: pairs of several requests go through it together, in its thread."""

    def __init__(self, encoder: CrossEncoder, batcher: Batcher, texts: Pool, queue_tokens: int) -> None:
        """texts: where pairs are tokenized; queue_tokens: of all pairs that wait."""
        self.close = batcher.close
        self._encoder = encoder
        self._batcher = batcher
        self._texts = texts
        self._queue_tokens = queue_tokens

    async def scores(self, query: str, texts: Sequence[str], ticket: Ticket) -> list[float]:
        """The logit of the query with each of at least one text, in order.

        Raises RequestTooLargeError where all of them exceed the queue, and what `Batcher.submit` raises.
        """
        pairs = await self._texts.run(self._encoder.pairs_of, query, texts)
        tokens = len(pairs.token_ids)
        if tokens > self._queue_tokens:
            raise RequestTooLargeError(
                f"{len(texts)} hits have {tokens} tokens with the query, and this server re-ranks at most "
                f"{self._queue_tokens} at once (setting queue_tokens): set top_k lower",
                "top_k",
            )
        encoded = await self._batcher.submit(pairs, LOGITS, ticket=ticket)
        assert encoded.dense is not None  # noqa: S101 - it was asked for
        return [round(logit, 6) for logit in encoded.dense[:, 0].tolist()]


class Rerankers:
    """Finds a re-ranker by its name. Safe to use on an event loop and in relays.

    loading: whether a thread loads one, which nothing can stop.

    The folder is listed once, here; a re-ranker that is added or changed later is used after a restart.
    """

    def __init__(
        self,
        settings: Settings,
        admission: Admission = ANY_WAIT,
        observe: Callable[[str, int, int, float], None] | None = None,
    ) -> None:
        """admission: by default of any wait; observe: takes the name of a re-ranker, and texts, tokens and
        seconds of each batch.
        """
        self._settings = settings
        self._admission = admission
        self._observe = observe
        self._names = () if settings.encoder_urls else reranker_names(settings.rerankers_folder)
        self._opened: dict[str, Reranker] = {}
        self.loading = False
        self._loading = Pool("rerankers", 1)  # one at a time, so that memory has room for one
        self._texts = text_pool()

    async def named(self, name: str, deadline: Deadline) -> Reranker:
        """The re-ranker of a name, which stays open.

        Raises RerankerNotFoundError, RerankerNotServedError where the encoder is elsewhere,
        DeadlineExceededError where others were still being loaded in the end, and what `load_reranker`
        raises.
        """
        if self._settings.encoder_urls:
            raise RerankerNotServedError(
                f"re-ranker {name!r} cannot be asked: this server's encoder is in workers elsewhere (setting "
                "encoder_urls), which re-rank nothing; leave reranker out, or ask a server with an encoder "
                "of its own"
            )
        if name not in self._names:
            raise RerankerNotFoundError(no_such("re-ranker", name, self._names))
        opened = self._opened.get(name)
        if opened is None:
            late = partial(too_late, 0.0)
            opened = await self._loading.run_in_time(deadline, late, None, self._open, name)
        return opened

    def _open(self, name: str) -> Reranker:
        """Loads a re-ranker, unless that was done since it was asked for."""
        if name not in self._opened:
            self.loading = True
            try:
                self._opened[name] = self._loaded(name)
            finally:
                self.loading = False
        return self._opened[name]

    def _loaded(self, name: str) -> Reranker:
        settings = self._settings
        encoder = load_reranker(settings.rerankers_folder, name, settings.device, settings.threads)
        batch_tokens = settings.batch_tokens or encoder.pass_tokens
        batcher = Batcher(
            partial(_logits, encoder, batch_tokens),
            self._texts,
            batch_tokens=batch_tokens,
            queue_tokens=settings.queue_tokens,
            admission=self._admission,
            observe=None if self._observe is None else partial(self._observe, name),
        )
        return Reranker(encoder, batcher, self._texts, settings.queue_tokens)

    async def close(self) -> None:
        """Finishes what was accepted and closes all re-rankers."""
        self._loading.close()
        await asyncio.gather(*(reranker.close() for reranker in list(self._opened.values())))
        self._texts.close()


def _logits(
    encoder: CrossEncoder, pass_tokens: int, pairs: TokenBatch, _outputs: object, _adapters: object
) -> Representations:
    logits = encoder.scores(pairs, pass_tokens)
    return Representations(pairs.lengths, pairs.truncated, logits[:, None], None, None)
