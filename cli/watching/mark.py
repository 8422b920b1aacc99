"""By what a collection's documents are known to be of a folder."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

FOLDER, PLACE = "source_folder", "source_place"
_PLACE_BYTES = 12


@dataclass(frozen=True, slots=True)
class FolderMark:
    """The name that a folder goes by, and the place that the name alone does not tell.

    place: a hash of the machine and the path, since other folders have the same name; None where the name was
    given to tell the folder from all others, wherever it lies.
    """

    name: str
    place: str | None = None

    def metadata(self) -> dict[str, str]:
        """What documents of the folder carry."""
        return {FOLDER: self.name} if self.place is None else {FOLDER: self.name, PLACE: self.place}

    def is_of(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a document with this metadata is the folder's, and so may be changed and deleted."""
        named = metadata.get(FOLDER) == self.name
        return named and (self.place is None or metadata.get(PLACE) == self.place)


def mark_of(root: Path, name: str | None) -> FolderMark:
    """The mark of a folder, by its resolved path, that goes by `name`, or by its own."""
    if name is not None:
        return FolderMark(name)
    host = socket.gethostname().partition(".")[0]  # the rest changes with the network
    place = blake2b(f"{host}\0{root}".encode(errors="surrogateescape"), digest_size=_PLACE_BYTES)
    return FolderMark(root.name or "root", place.hexdigest())
