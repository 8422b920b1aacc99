"""Carries out a traced run on a `power.disk`, and stops after each change."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

from tests.endurance.power.disk import File, Folder, Resize, Write, rename
from tests.endurance.power.trace import Call

_DESCRIPTOR = re.compile(r"/proc/self/fd/(\d+)")


@dataclass(slots=True)
class _Open:
    """An open file; descriptors that were duplicated share it."""

    entry: File | Folder | None
    place: int = 0
    appends: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a path leads: a name in a folder that is watched, parent None elsewhere; entry: what is there."""

    parent: Folder | None
    name: str
    entry: File | Folder | None


@dataclass(slots=True)
class Replay:
    """base: the folder that is watched; it is there, empty and durable. Calls on other files change nothing.

    kept: what files hold whose contents no trace shows, by the number of the file, as `mapped` of an earlier
    replay names them.
    """

    base: str
    marks: str
    kept: dict[int, bytes] = field(default_factory=dict)
    root: Folder = field(default_factory=Folder)
    said: list[bytes] = field(default_factory=list)
    _descriptors: dict[int, _Open] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _files: list[File] = field(default_factory=list)
    _mapped: set[int] = field(default_factory=set)
    _links: dict[int, str] = field(default_factory=dict)
    _marks: set[int] = field(default_factory=set)

    @property
    def mapped(self) -> dict[int, str]:
        """Of files written through mapped memory and forced: the path of another name, by number."""
        return {number: self._links[number] for number in self._mapped if number in self._links}

    def carry_out(self, call: Call) -> bool:
        """One call. Returns whether something on the disk changed, or something was said."""
        handler = getattr(self, f"_{call.name}", None)
        if handler is None:
            raise ValueError(f"line {call.ended}: {call.name} is not understood")
        return bool(handler(call))

    def force_all(self) -> None:
        """What `sync` does: all that is there is durable."""
        folders = [self.root]
        for folder in folders:
            folder.force(sys.maxsize)
            for entry in folder.current.values():
                if isinstance(entry, Folder):
                    folders.append(entry)
                else:
                    entry.force(sys.maxsize)

    # Descriptors

    def _openat(self, call: Call) -> bool:
        return self._opened(call, self._place(call, 0, 1), call.arguments[2])

    def _open(self, call: Call) -> bool:
        return self._opened(call, self._place(call, None, 0), call.arguments[1])

    def _opened(self, call: Call, place: _Place, flags: str) -> bool:
        self._marks.discard(call.result)
        if place.parent is None and place.name == self.marks:
            self._marks.add(call.result)
        entry, changed = place.entry, False
        if entry is None and place.parent is not None and "O_CREAT" in flags:
            entry, changed = File(), True
            self._numbers[id(entry)] = len(self._files)
            self._files.append(entry)
            rename([(place.parent, {place.name: entry})], call.ended)
        if isinstance(entry, File) and "O_TRUNC" in flags and entry.size:
            entry.waiting.append(Resize(0, call.ended))
            changed = True
        self._descriptors[call.result] = _Open(entry, 0, "O_APPEND" in flags)
        return changed

    def _close(self, call: Call) -> bool:
        self._descriptors.pop(call.number(0), None)
        self._marks.discard(call.number(0))
        return False

    def _dup(self, call: Call) -> bool:
        self._descriptors[call.result] = self._file(call.number(0))
        return False

    _dup2 = _dup3 = _dup

    def _fcntl(self, call: Call) -> bool:
        return self._dup(call) if call.arguments[1].startswith("F_DUPFD") else False

    def _lseek(self, call: Call) -> bool:
        self._file(call.number(0)).place = call.result
        return False

    # Contents

    def _write(self, call: Call) -> bool:
        if call.number(0) in self._marks:
            self.said += call.content(1).splitlines()
            return True
        opened = self._file(call.number(0))
        if isinstance(opened.entry, File) and opened.appends:
            opened.place = opened.entry.size
        changed = self._written(opened, opened.place, call, 1)
        opened.place += call.result
        return changed

    _writev = _write

    def _pwrite64(self, call: Call) -> bool:
        return self._written(self._file(call.number(0)), call.number(3), call, 1)

    def _written(self, opened: _Open, at: int, call: Call, place: int) -> bool:
        if not isinstance(opened.entry, File):
            return False
        opened.entry.waiting.append(Write(at, call.content(place)[: call.result], call.ended))
        return True

    def _sendfile(self, call: Call) -> bool:
        target, source = self._file(call.number(0)), self._file(call.number(1))
        if not isinstance(target.entry, File):
            return False
        if not isinstance(source.entry, File):
            raise ValueError(f"line {call.ended}: sendfile of a file elsewhere is not understood")
        given = re.search(r"\d+", call.arguments[2])
        start = source.place if given is None else int(given[0])
        content = source.entry.content[start : start + call.result]
        target.entry.waiting.append(Write(target.place, content, call.ended))
        target.place += call.result
        return True

    def _ftruncate(self, call: Call) -> bool:
        return self._resized(call, call.number(1))

    def _fallocate(self, call: Call) -> bool:
        if call.arguments[1] != "0":
            raise ValueError(f"line {call.ended}: fallocate with {call.arguments[1]} is not understood")
        file = self._file(call.number(0)).entry
        end = call.number(2) + call.number(3)
        return isinstance(file, File) and file.size < end and self._resized(call, end)

    def _resized(self, call: Call, size: int) -> bool:
        file = self._file(call.number(0)).entry
        if not isinstance(file, File):
            return False
        file.waiting.append(Resize(size, call.ended))
        return True

    def _mmap(self, call: Call) -> bool:
        """A file mapped to be written has its last content from then on; a loss may leave any part of it."""
        shared = "MAP_SHARED" in call.arguments[3] and "PROT_WRITE" in call.arguments[2]
        descriptor = call.number(4)
        file = self._file(descriptor).entry if shared and descriptor >= 0 else None
        if not isinstance(file, File):
            return False
        number = self._numbers[id(file)]
        self._mapped.add(number)
        if number in self.kept:
            file.waiting.append(Write(0, self.kept[number], call.ended))
            return True
        return False

    def _fsync(self, call: Call) -> bool:
        entry = self._file(call.number(0)).entry
        if entry is None or not entry.waiting:
            return False
        entry.force(call.begun)
        return True

    _fdatasync = _fsync

    # Names

    def _mkdir(self, call: Call) -> bool:
        return self._named(self._place(call, None, 0), Folder(), call)

    def _mkdirat(self, call: Call) -> bool:
        return self._named(self._place(call, 0, 1), Folder(), call)

    def _rename(self, call: Call) -> bool:
        return self._renamed(call, self._place(call, None, 0), self._place(call, None, 1))

    def _renameat(self, call: Call) -> bool:
        return self._renamed(call, self._place(call, 0, 1), self._place(call, 2, 3))

    _renameat2 = _renameat

    def _renamed(self, call: Call, old: _Place, new: _Place) -> bool:
        if old.parent is None and new.parent is None:
            return False
        if old.parent is None or new.parent is None:
            raise ValueError(f"line {call.ended}: a rename from outside, or to there, is not understood")
        if old.parent is new.parent:
            rename([(old.parent, {old.name: None, new.name: old.entry})], call.ended)
        else:
            rename([(old.parent, {old.name: None}), (new.parent, {new.name: old.entry})], call.ended)
        return True

    def _link(self, call: Call) -> bool:
        return self._linked(call, self._place(call, None, 0), self._place(call, None, 1))

    def _linkat(self, call: Call) -> bool:
        return self._linked(call, self._place(call, 0, 1), self._place(call, 2, 3))

    def _linked(self, call: Call, old: _Place, new: _Place) -> bool:
        entry = old.entry
        if descriptor := _DESCRIPTOR.fullmatch(old.name):
            entry = self._file(int(descriptor[1])).entry
        if isinstance(entry, File) and new.parent is None:
            self._links[self._numbers[id(entry)]] = new.name
        return entry is not None and self._named(new, entry, call)

    def _unlink(self, call: Call) -> bool:
        return self._named(self._place(call, None, 0), None, call)

    _rmdir = _unlink

    def _unlinkat(self, call: Call) -> bool:
        return self._named(self._place(call, 0, 1), None, call)

    def _named(self, place: _Place, entry: File | Folder | None, call: Call) -> bool:
        """A name gets an entry, or is removed."""
        if place.parent is None:
            return False
        rename([(place.parent, {place.name: entry})], call.ended)
        return True

    # Where

    def _file(self, descriptor: int) -> _Open:
        return self._descriptors.setdefault(descriptor, _Open(None))

    def _place(self, call: Call, folder: int | None, path: int) -> _Place:
        """What the path of an argument leads to, from the folder of another one where it is relative."""
        name = call.path(path)
        start: File | Folder | None = None
        if name == self.base or name.startswith(f"{self.base}/"):
            start, name = self.root, name[len(self.base) + 1 :]
        elif not name.startswith("/") and folder is not None and call.arguments[folder] != "AT_FDCWD":
            start = self._file(call.number(folder)).entry
        if not isinstance(start, Folder):
            return _Place(None, name, None)
        *parents, last = name.split("/")
        for parent in parents:
            start = start.current[parent]
            assert isinstance(start, Folder)
        return _Place(start, last, start.current.get(last)) if last else _Place(None, name, start)
