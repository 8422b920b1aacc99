"""What is known of a backup, `backup.json`."""

from __future__ import annotations

import re
import secrets
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.errors import DamagedIndexError, InvalidNameError
from tercet.index.files.content import missing
from tercet.index.files.directory import write_json_atomically

FILE = "backup.json"
_ID = re.compile(r"[0-9]{8}t[0-9]{6}-[0-9a-f]{4}")
_ID_TIME = "%Y%m%dt%H%M%S"


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup of a collection.

    id: when it was begun, in UTC, and something random; position: the last operation that it holds;
    documents: how many; size_bytes: of all its files, most of which share their room with the collection
    where the file system has hard links; created: ISO 8601, in UTC.
    """

    id: str
    collection: str
    position: int
    documents: int
    size_bytes: int
    created: str

    def write(self, folder: Path) -> None:
        """Writes `backup.json` into the folder of the backup."""
        write_json_atomically(folder / FILE, {"format_version": FORMAT_VERSION, **asdict(self)})

    @staticmethod
    def read(folder: Path) -> Backup:
        """Reads the `backup.json` of a backup's folder. Raises DamagedIndexError naming the file."""
        path = folder / FILE
        try:
            record = Record.read(path, "delete the backup")
        except FileNotFoundError as error:
            raise missing(path) from error
        record.require_version()
        names = [field.name for field in fields(Backup)]
        record.require_keys(("format_version", *names))
        for name in ("position", "documents", "size_bytes"):
            record.count(name)
        backup = Backup(**{name: record.values[name] for name in names})
        try:
            check_collection_name(backup.collection)
            datetime.fromisoformat(backup.created)
        except (InvalidNameError, TypeError, ValueError) as error:
            raise record.damaged(str(error)) from error
        if backup.id != folder.name:
            raise DamagedIndexError(f"{path} is of backup {backup.id!r:.80}; rename the folder back")
        return backup


def new_id() -> str:
    """The id of a backup that begins now, such as `20261123t024501-ab12`."""
    return f"{datetime.now(UTC).strftime(_ID_TIME)}-{secrets.token_hex(2)}"


def is_id(text: str) -> bool:
    """Whether this is a backup's id, and so no path."""
    return _ID.fullmatch(text) is not None


def time_of(id: str) -> datetime:
    """When the backup of an id was begun. Raises ValueError for a time that no calendar has."""
    return datetime.strptime(id.partition("-")[0], _ID_TIME).replace(tzinfo=UTC)
