"""Files as strangers might make them: sound ones, changed where formats have numbers, names and lengths."""

from __future__ import annotations

import copy
import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

Mutation = Callable[[Random, bytes], bytes]

NESTED = 3_000  # lists in one another
HUGE = 10**400
# Written in the place of a value that `json` does not write itself.
RAW = {
    "@deep": "[" * NESTED + "]" * NESTED,
    "@digits": "9" * 5_000,
    "@exponent": "1e999",
    "@twice": '{"a": 1, "a": 2}',
}
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        3.5,
        -0.0,
        63,
        64,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**53,
        2**63,
        -(2**63),
        HUGE,
    ),
    *(float("nan"), float("inf"), float("-inf"), 1e-320, 1e308),
    *(
        "",
        "a",
        "[UNK]",
        "none",
        "x" * 10_000,
        "\0",
        "\ud800",
        "😀",
        "..",
        "../..",
        "/",
        "/dev/zero",
        "/etc",
        ".",
    ),
    *([], {}, [[]], [None], {"": None}, [0] * 1_000, {"a": {"a": {}}}),
    *RAW,
)
INTERESTING = (
    0,
    1,
    2,
    7,
    0x7F,
    0x80,
    0xFF,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**63 - 1,
    2**64 - 1,
)


def changed_bytes(random: Random, content: bytes) -> bytes:
    """Some bytes flipped, cut off, doubled, moved or replaced by an extreme number."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if not changed:
            break
        start = random.randrange(len(changed))
        stop = min(len(changed), start + random.choice((1, 2, 4, 8, 64)))
        match random.randrange(7):
            case 0:
                changed[start] ^= 1 << random.randrange(8)
            case 1:
                changed[start] = random.randrange(256)
            case 2:
                del changed[start:]
            case 3:
                del changed[start:stop]
            case 4:
                changed[start:start] = changed[start:stop]
            case 5:
                changed[start:stop] = random.randbytes(stop - start)
            case _:
                number = random.choice(INTERESTING).to_bytes(8, "little")
                width = random.choice((1, 2, 4, 8))
                changed[start : start + width] = number[:width]
    return bytes(changed)


def changed_json(random: Random, content: bytes) -> bytes:
    """Some values or keys of a JSON document replaced by others of any type and size."""
    if random.random() < 0.15:
        return changed_bytes(random, content)
    document = json.loads(content)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(document))
        if not places:
            return _written(_value(random))
        holder, key = random.choice(places)
        _change(random, holder, key)
    return _written(document)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document, with each of its keys."""
    pending = [document]
    while pending:
        holder = pending.pop()
        if isinstance(holder, dict | list) and holder:
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            for key in keys:
                yield holder, key
                pending.append(holder[key])


def _change(random: Random, holder: Any, key: Any) -> None:
    choice = random.randrange(8)
    if choice == 0:
        del holder[key]
    elif choice == 1 and isinstance(holder, dict):
        holder[random.choice(("", "a", "unknown", str(key) + "x", "../x"))] = holder.pop(key)
    elif choice == 2 and isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    elif choice == 3:
        other = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        holder[key], holder[other] = holder[other], holder[key]
    elif choice == 4 and type(holder[key]) is int:
        holder[key] += random.choice((-1, 1, -(2**31), 2**31, 2**40))
    else:
        holder[key] = _value(random)


def _value(random: Random) -> Any:
    return copy.deepcopy(random.choice(VALUES))  # which later changes may change


def _written(document: Any) -> bytes:
    text = json.dumps(document)
    for name, raw in RAW.items():
        text = text.replace(json.dumps(name), raw)
    return text.encode()


def changed_header(random: Random, content: bytes) -> bytes:
    """A safetensors file with another header, length of it, or values."""
    start = 8 + int.from_bytes(content[:8], "little")
    header, values = content[8:start], content[start:]
    match random.randrange(6):
        case 0:
            return changed_bytes(random, content[:start]) + values
        case 1:
            return changed_bytes(random, content)
        case 2:
            length = random.choice((*INTERESTING, len(header) + 1, len(header) - 1))
            return length.to_bytes(8, "little") + header + values
        case 3:
            header += b" " * random.randint(1, 70)
        case 4:
            values = values[: random.randrange(len(values) + 1)] + bytes(random.choice((0, 0, 1, 8)))
        case _:
            header = changed_json(random, header.rstrip())
    return len(header).to_bytes(8, "little") + header + values


def changed_index(random: Random, content: bytes) -> bytes:
    """A FAISS file changed mostly where its parts begin, whose types and counts are there, or at its end."""
    if random.random() < 0.2:
        return changed_bytes(random, content)
    begins = [0, *(match.start() for match in re.finditer(rb"I[wx][A-Za-z]{2}|ilar|full|null", content))]
    start = random.choice((*begins, len(content) - 256))
    stop = min(len(content), start + random.choice((8, 64, 256)))
    return content[:start] + changed_bytes(random, content[start:stop]) + content[stop:]


def changed_message(random: Random, content: bytes) -> bytes:
    """A protobuf message with a field somewhere within it changed, its lengths kept right or not."""
    if random.random() < 0.3:
        return changed_bytes(random, content)
    return _with_changed_field(random, content, 0)


def _with_changed_field(random: Random, content: bytes, depth: int) -> bytes:
    fields = list(_fields(content))
    if not fields:
        return changed_bytes(random, content)
    index = random.randrange(len(fields))
    start, stop, number, kind, value = fields[index]
    nested = kind == 2 and depth < 8 and random.random() < 0.85 and list(_fields(value))
    if nested:
        field = _tagged(number, 2, _with_changed_field(random, value, depth + 1))
    else:
        field = random.choice(
            (
                b"",
                2 * content[start:stop],
                _tagged(number, 0, random.choice(INTERESTING)),
                _tagged(number, 2, changed_bytes(random, value) if kind == 2 and value else b"x"),
                _tagged(number, 2, random.choice((b"", b"\xff", b"../x", b"x" * 5_000))),
                _tagged(random.randrange(1, 16), kind if kind in (0, 2) else 2, value),
                _tagged(
                    number, 5, struct.pack("<f", random.choice((0.0, 1e38, float("nan"), float("inf"), -1.0)))
                ),
            )
        )
    return content[:start] + field + content[stop:]


def _fields(content: bytes) -> Iterator[tuple[int, int, int, int, Any]]:
    """Start, end, number, kind and value of each field, as far as the bytes are fields."""
    offset = 0
    while offset < len(content):
        start = offset
        try:
            key, offset = _varint(content, offset)
            kind, value = key & 7, None
            if kind == 0:
                value, offset = _varint(content, offset)
            elif kind == 2:
                length, offset = _varint(content, offset)
                value, offset = content[offset : offset + length], offset + length
            else:
                offset += {1: 8, 5: 4}[kind]
        except (IndexError, KeyError):
            return
        if offset > len(content) or key >> 3 == 0:
            return
        yield start, offset, key >> 3, kind, value if value is not None else content[offset - 4 : offset]


def _varint(content: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset


def _number(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _tagged(number: int, kind: int, value: Any) -> bytes:
    key = _number(number << 3 | kind)
    if kind == 2:
        return key + _number(len(value)) + value if isinstance(value, bytes) else key + _number(1) + b"x"
    return key + (_number(value) if isinstance(value, int) else bytes(value or b""))


def put(random: Random, path: Path, content: bytes, mutation: Mutation) -> str:
    """Writes a changed file, or what is no file in its place; tells which."""
    path.unlink(missing_ok=True)
    if random.random() > 0.003:
        path.write_bytes(mutation(random, content))
        return "file"
    kind = random.choice(("pipe", "missing", "loop", "folder link", "device", "empty"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "empty":
        path.touch()
    elif kind != "missing":
        path.symlink_to({"loop": path.name, "folder link": ".", "device": "/dev/zero"}[kind])
    return kind
