"""The encoders of one server: its own, and those that its collections and requests name.

Each has a queue of its own. Those beside the server's own are opened at their first use and stay open, so
many of them; then the one that was longest of no use makes room, and never one that somebody has.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from weakref import WeakSet

from tercet.index.catalog.settings import CollectionSettings
from tercet.ingest.encoder_match import checkpoint_of, require_encoder
from tercet.models.checkpoint import SHIPPED
from tercet.models.errors import (
    AdapterNotFoundError,
    AdapterNotServedError,
    AdapterUnusableError,
    EncoderUnavailableError,
    ModelError,
)
from tercet.service.encoding.adapters import info_for
from tercet.service.encoding.service import EncodingService
from tercet.service.exceptions import OverloadedError
from tercet.service.load.pools import Pool
from tercet.service.load.relay import on_loop

BUSY_SECONDS = 5.0  # after which another try may find an encoder that nobody uses
NAMES_SECONDS = 5.0  # for which the names that collections give are not asked for again

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class Opening:
    """How further encoders are opened, and how many stay open.

    open: blocking, an encoder by its checkpoint, raises ModelError; named: blocking, the checkpoints of all
    collections by their encoders' names; pool: where both run.
    """

    open: Callable[[str], EncodingService]
    named: Callable[[], Mapping[str, str]]
    pool: Pool
    most: int


@dataclass(slots=True)
class _OpenEncoder:
    """An open encoder, and the objects through which it is in use."""

    encoding: EncodingService
    used: float = 0.0
    in_use: WeakSet[EncodingService] = field(default_factory=WeakSet)

    def take(self) -> EncodingService:
        """The encoder as an object of its own: while that is alive, the encoder is in use."""
        self.used = time.monotonic()
        taken = copy(self.encoding)
        self.in_use.add(taken)
        return taken


class EncoderShelf:
    """Finds the encoder of a collection, or the one of a name. Safe to use on an event loop and in relays."""

    def __init__(self, own: EncodingService, opening: Opening | None = None) -> None:
        """own: the server's own, open for as long as this is; opening: None where there is no other."""
        self.own = own
        self._opening = opening
        self._lock = threading.Lock()  # of the open encoders
        self._encoders: dict[str, _OpenEncoder] = {}
        self._turn = asyncio.Lock()  # one is opened at a time, so that memory has room for one
        self._names: tuple[float, Mapping[str, str]] | None = None
        self.loading = False

    async def of_collection(
        self, settings: CollectionSettings, adapter: str | None = None
    ) -> EncodingService:
        """The encoder that a collection was built with. adapter: what is asked for, if anything.

        Raises FingerprintMismatchError where the adapter, or what is found where the encoder was, is another
        than the collection's, EncoderUnavailableError where the encoder cannot be opened, OverloadedError
        where too many others are in use, and what `EncodingService.info_of` raises.
        """
        encoding = await self._encoding_for(settings)
        require_encoder(settings, await info_for(settings, adapter, encoding.info_of))
        return encoding

    async def named(self, model: str | None) -> EncodingService | None:
        """The encoder of this name or fingerprint, the server's own for None; None where there is no such.

        Raises EncoderUnavailableError and OverloadedError as `of_collection`.
        """
        if model is None or model in (self.own.info.name, self.own.info.fingerprint):
            return self.own
        with self._lock:
            for opened in self._encoders.values():
                if model in (opened.encoding.info.name, opened.encoding.info.fingerprint):
                    return opened.take()
        checkpoint = (await self._checkpoints()).get(model)
        if self._opening is None or checkpoint is None:
            return None
        return await self._opened(self._opening, checkpoint, model)

    async def names(self) -> list[str]:
        """The names of all encoders that can be asked for, the server's own first."""
        return list(dict.fromkeys((self.own.info.name, *await self._checkpoints())))

    def wait_seconds(self, tokens: int) -> float:
        """How long texts of so many tokens would wait at least if they came now, whichever encoder's."""
        return min(encoding.wait_seconds(tokens) for encoding in self._encodings())

    def pending_tokens(self) -> Iterator[tuple[str, float]]:
        """Tokens accepted and not yet encoded, by encoder."""
        for encoding in self._encodings():
            yield encoding.info.name, encoding.pending_tokens

    async def close(self) -> None:
        """Finishes what was accepted and closes all encoders."""
        await asyncio.gather(*(encoding.close() for encoding in self._encodings()))

    def _encodings(self) -> list[EncodingService]:
        with self._lock:
            return [self.own, *(opened.encoding for opened in self._encoders.values())]

    async def _encoding_for(self, settings: CollectionSettings) -> EncodingService:
        own, checkpoint = self.own.info, checkpoint_of(settings)
        if self._opening is None or checkpoint is None:
            return self.own
        if settings.fingerprint == own.fingerprint or checkpoint == (own.checkpoint or own.name):
            return self.own
        if settings.adapter is not None and await self._is_own(settings):
            return self.own
        return await self._opened(self._opening, checkpoint, settings.encoder)

    async def _is_own(self, settings: CollectionSettings) -> bool:
        """Whether the server's own encoder, from another folder, is the collection's with its adapter."""
        try:
            return (await self.own.info_of(settings.adapter)).fingerprint == settings.fingerprint
        except (AdapterNotFoundError, AdapterNotServedError, AdapterUnusableError):
            return False

    async def _checkpoints(self) -> Mapping[str, str]:
        """The checkpoints that may be asked for, by name: none but those that the operator has here."""
        if self._opening is None:
            return {}
        if self._names is None or time.monotonic() - self._names[0] > NAMES_SECONDS:
            named = await self._opening.pool.run(self._opening.named)
            self._names = time.monotonic(), {**named, **{name: name for name in SHIPPED}}
        return self._names[1]

    async def _opened(self, opening: Opening, checkpoint: str, name: str) -> EncodingService:
        taken = self._taken(checkpoint)
        return await on_loop(self._open(opening, checkpoint, name)) if taken is None else taken

    async def _open(self, opening: Opening, checkpoint: str, name: str) -> EncodingService:
        """Who leaves does not end what others wait for."""
        return await asyncio.shield(asyncio.ensure_future(self._open_in_turn(opening, checkpoint, name)))

    def _taken(self, checkpoint: str) -> EncodingService | None:
        with self._lock:
            opened = self._encoders.get(checkpoint)
            return None if opened is None else opened.take()

    async def _open_in_turn(self, opening: Opening, checkpoint: str, name: str) -> EncodingService:
        async with self._turn:
            taken = self._taken(checkpoint)  # opened meanwhile, perhaps
            return await self._load(opening, checkpoint, name) if taken is None else taken

    async def _load(self, opening: Opening, checkpoint: str, name: str) -> EncodingService:
        await self._make_room(opening.most, name)
        self.loading = True
        try:
            encoding = await opening.pool.run(opening.open, checkpoint)
        except ModelError as error:
            log.error("encoder %r cannot be opened from %s: %s", name, checkpoint, error)
            raise EncoderUnavailableError(
                f"encoder {name!r} cannot be opened from where its collections were built with it; the "
                "server's log says why. Put it back there, or start a server with --checkpoint FOLDER"
            ) from error
        finally:
            self.loading = False
        log.info("encoder %s is open, fingerprint %s", encoding.info.name, encoding.info.fingerprint)
        opened = _OpenEncoder(encoding)
        taken = opened.take()
        with self._lock:
            self._encoders[checkpoint] = opened
        return taken

    async def _make_room(self, most: int, name: str) -> None:
        """Closes encoders that nobody has, until there is room for one more."""
        if most == 0:
            raise EncoderUnavailableError(
                f"encoder {name!r} is not this server's own, {self.own.info.name!r}, and it opens no other "
                "(setting max_checkpoints is 0)"
            )
        while True:
            with self._lock:
                if len(self._encoders) < most:
                    return
                idle = {at: opened for at, opened in self._encoders.items() if not opened.in_use}
                if not idle:
                    raise OverloadedError(
                        f"{most} other encoders are in use, the limit (setting max_checkpoints), and "
                        f"{name!r} is none of them: try again in a moment",
                        BUSY_SECONDS,
                        "encoders",
                    )
                checkpoint = min(idle, key=lambda at: idle[at].used)
                opened = self._encoders.pop(checkpoint)
            log.info("encoder %s is closed to make room", opened.encoding.info.name)
            await opened.encoding.close()
