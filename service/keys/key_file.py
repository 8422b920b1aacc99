"""The file of keys that each have their own access: JSON lines, read again whenever it changes.

    {"key": "…", "access": "read", "collections": ["a*"], "requests_per_second": 20, "id": "team-a"}

`key_sha256`, 64 hexadecimal digits, may stand in the place of `key`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tercet.index.files.versions import FileVersion, version_of
from tercet.service.exceptions import SettingsError
from tercet.service.invalid_values import message_of
from tercet.service.keys.access import Access, Names, Right
from tercet.service.keys.keys import digest_of, id_of, is_key, unread
from tercet.service.load.pools import Pool

LOOK_SECONDS = 1.0
MAX_BYTES = 16 << 20

Keys = Mapping[bytes, Access]
"""By the SHA-256 of each key."""

log = logging.getLogger("tercet")

Pattern = Annotated[str, Field(pattern=r"^[a-z0-9_*?\[\]!-]{1,128}$")]


class _Line(BaseModel):
    """A key, or its digest, and what it may do."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    key: str | None = None
    key_sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    access: Right
    collections: Annotated[list[Pattern], Field(max_length=1000)] | None = None
    requests_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if (self.key is None) == (self.key_sha256 is None):
            raise ValueError("give key or key_sha256: one of them")
        if self.key is not None and not is_key(self.key):
            raise ValueError("a key must be printable ASCII without spaces")
        return self

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the key."""
        return digest_of(self.key or "") if self.key_sha256 is None else bytes.fromhex(self.key_sha256)

    @property
    def granted(self) -> Access:
        """What the key may do."""
        everything = self.collections is None or "*" in self.collections
        names = None if everything else Names(self.collections or ())
        return Access(self.access, self.id or id_of(self.digest), names, self.requests_per_second)


def read_key_file(path: Path) -> Keys:
    """The keys of a file by their digests.

    Raises SettingsError, which names the file and the line and never a key, where the file cannot be read,
    holds no key, or has a line that is none; where a key or an id is there twice.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SettingsError(f"keys file {path} has {size} bytes; the limit is {MAX_BYTES}")
        content = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"keys file {path}: {unread(error)}") from error
    found: dict[bytes, Access] = {}
    keys: dict[bytes, int] = {}
    ids: dict[str | None, int] = {}
    for number, line in _lines(path, content):
        digest, granted = line.digest, line.granted
        for seen, what, name in ((keys.get(digest), "key", ""), (ids.get(granted.key), "id", granted.key)):
            if seen is not None:
                shown = f" {name}" if name else ""
                raise SettingsError(
                    f"keys file {path}, line {number}: the {what}{shown} is that of line {seen}"
                )
        found[digest], keys[digest], ids[granted.key] = granted, number, number
    if not found:
        raise SettingsError(f"keys file {path} holds no key; write one a line, as a JSON object")
    return found


def _lines(path: Path, content: bytes) -> Iterator[tuple[int, _Line]]:
    """With their numbers; empty ones are dropped. Raises SettingsError."""
    for number, text in enumerate(content.splitlines(), start=1):
        if not text.strip():
            continue
        where = f"keys file {path}, line {number}"
        try:
            yield number, _Line.model_validate(orjson.loads(text))
        except orjson.JSONDecodeError:  # whose message shows the line
            raise SettingsError(f"{where}: it is no JSON object") from None
        except ValidationError as error:
            raise SettingsError(f"{where}: {_problem(error)}") from None


def _problem(error: ValidationError) -> str:
    """What is wrong with a line; nothing that may be a key is shown."""
    detail = error.errors()[0]
    field = str(detail["loc"][0]) if detail["loc"] else ""
    if detail["type"] == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    if not field:
        return "it is no JSON object"
    if field == "key":
        return "key is no text; write it as a string"
    if field == "key_sha256":
        return "key_sha256 is no SHA-256; write it as 64 hexadecimal digits"
    return message_of(".".join(map(str, detail["loc"])), [dict(detail)])


class KeyFile:
    """A file of keys as it is now; where it is broken, as it was before."""

    def __init__(self, path: Path) -> None:
        """Raises SettingsError, as `read_key_file` does."""
        self._path = path
        self._version = self._now()
        self.keys = read_key_file(path)
        self.sound = True
        self._asked = False

    def ask(self) -> None:
        """Has the next look read it, changed or not; safe in a signal's handler."""
        self._asked = True

    async def watch(self, changed: Callable[[Keys], None], pool: Pool) -> None:
        """For ever: tells of the keys of each version of the file. pool: where it is looked at."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if await pool.run(self._look):
                changed(self.keys)

    def _look(self) -> bool:
        """Whether there are other keys than before."""
        version = self._now()  # before it is read: what is written meanwhile is seen by the next look
        if version == self._version and not self._asked:
            return False
        self._version, self._asked = version, False
        try:
            keys = read_key_file(self._path)
        except Exception as error:  # noqa: BLE001 - whatever it is, later changes are to be taken up
            self.sound = False
            known = isinstance(error, SettingsError)  # others might show what they were reading
            told = error if known else f"keys file {self._path}: {type(error).__name__}"
            log.error("%s; the keys of before stay in use", told)
            return False
        former, self.keys, self.sound = self.keys, keys, True
        log.info("keys file %s: %d keys", self._path, len(keys))
        return former != keys

    def _now(self) -> FileVersion | None:
        try:
            return version_of(str(self._path))
        except OSError:  # reading it tells why
            return None
