"""Which server writes the collections below a URL, as far as its signs of life tell.

The objects `signs/000000000001` and so on are each created once, and name a server. The one of the newest
number has the lease for as long as it creates the next number in time; after that any other may. Who has the
lease ends nobody's writes: ledgers themselves refuse a former writer. So no two clocks are compared.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from tercet.cluster.errors import ClusterError
from tercet.cluster.ledgers.chain import listed_numbers, numbered_path
from tercet.cluster.ledgers.promoting import ledgers_at
from tercet.cluster.objects.errors import AlreadyThereError, ObjectMissingError
from tercet.cluster.objects.store import ObjectStore
from tercet.index.files.content import read_json_object
from tercet.index.files.directory import write_json_atomically

FOLDER = "signs"
SERVER_FILE = "server.json"  # of the data root

log = logging.getLogger("tercet")


class StoreLease:
    """The lease of a URL, for one server. Of one thread at a time.

    standby: whether this server follows the URL, and is to write only once the lease is its own.
    """

    def __init__(
        self,
        store: ObjectStore,
        data: Path,
        seconds: float,
        *,
        standby: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """store: of the URL; data: the data root; seconds: without a sign, after which it is nobody's."""
        self.seconds = seconds
        self._store = store
        self._data = data
        self._standby = standby
        self._clock = clock
        self._number, self._owner = -1, ""
        self._since = 0.0  # when the newest sign was first seen
        self._is_held = not standby
        self._told = ""

    @property
    def is_held(self) -> bool:
        """Whether the lease was this server's at the last look; a server that is to write has it at first."""
        return self._is_held

    def keep(self) -> bool:
        """Gives a sign where the lease is this server's, or nobody's any more; returns whether it is its own.
        What fails is logged once.
        """
        try:
            self._is_held = self._keep()
            self._tell("" if self._is_held or self._standby else f"server {self._owner} writes there now")
        except ClusterError as error:
            self._tell(str(error))
        return self._is_held

    def take(self) -> None:
        """Gives the next sign, whoever gave the last one; none where no server gives any."""
        self._look()
        if self._number:
            self._sign()

    def _keep(self) -> bool:
        self._look()
        is_own = self._owner == server_of(self._data) or (not self._number and not self._standby)
        is_free = self._clock() - self._since >= self.seconds
        if is_own or (is_free and (not self._standby or bool(ledgers_at(self._store)))):
            return self._sign()
        return False

    def _look(self) -> None:
        number = max(listed_numbers(self._store, FOLDER), default=0)
        if number == self._number:
            return
        self._number, self._since, self._owner = number, self._clock(), ""
        if number:
            try:
                self._owner = json.loads(self._store.get(numbered_path(FOLDER, number)))["server"]
            except ObjectMissingError:  # a later one is there by now
                self._number = -1

    def _sign(self) -> bool:
        """Creates the next sign; whether no other server did so before."""
        number = max(self._number, 0) + 1
        server = server_of(self._data)
        try:
            self._store.create(numbered_path(FOLDER, number), json.dumps({"server": server}).encode())
        except AlreadyThereError:
            return False
        self._number, self._since, self._owner = number, self._clock(), server
        formers = [each for each in listed_numbers(self._store, FOLDER) if each < number]
        self._store.delete([numbered_path(FOLDER, former) for former in formers])
        return True

    def _tell(self, failure: str) -> None:
        if failure and failure != self._told:
            log.warning("the lease of %s is not this server's: %s", self._store.url, failure)
        self._told = failure


def server_of(data: Path) -> str:
    """The name that a data root gives its server among others: random, made when it is first asked for."""
    file = data / SERVER_FILE
    try:
        return str(read_json_object(file)["server"])
    except FileNotFoundError:
        server = secrets.token_hex(8)
        write_json_atomically(file, {"server": server})
        return server
