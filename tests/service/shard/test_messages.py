"""A message arrives as it was sent, or is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from tercet.index.files.packed_bytes import PackedBytes
from tercet.models.representations import Float64, Int32, Shape
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.messages import Message, pack


@dataclass(frozen=True, slots=True)
class Part:
    """A record that others hold."""

    terms: Annotated[Int32, Shape("T")]
    weights: Annotated[Float64, Shape("T", "C")]
    names: PackedBytes
    note: str | None
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """A record of everything that travels."""

    name: str
    count: int
    share: float
    kind: Literal["one", "other"]
    words: tuple[str, ...]
    anything: Any
    scores: Annotated[Float64, Shape("N")]
    ids: Annotated[PackedBytes, Shape("N")]
    part: Part | None = None
    parts: tuple[Part | None, ...] = ()


def part(terms: int, note: str | None = None, content: bytes | None = None) -> Part:
    names = PackedBytes.of([b"x" * number for number in range(terms)])
    return Part(np.arange(terms, dtype=np.int32), np.ones((terms, 2)), names, note, content)


def whole(**changes: Any) -> Whole:
    ids = PackedBytes.of([b"tea", "Grünkohl".encode()])
    parts = (part(2), None, part(0, "empty", b"\xff"), part(3))
    values = {"scores": np.array([0.5, 0.25]), "ids": ids, "part": part(1), "parts": parts, **changes}
    return Whole("a", 3, 0.5, "one", ("b", "c"), {"d": [1, None]}, **values)


def listed(value: Any) -> Any:
    """What it holds, to be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.tolist()
    if isinstance(value, PackedBytes):
        return value.take(np.arange(len(value)))
    if isinstance(value, tuple):
        return [listed(each) for each in value]
    if isinstance(value, Part | Whole):
        return [listed(getattr(value, name)) for name in value.__slots__]
    return value


@pytest.mark.parametrize("changes", [{}, {"part": None}, {"parts": ()}, {"parts": (None, None)}])
def test_a_record_arrives_as_it_was_sent(changes: dict[str, Any]) -> None:
    sent = whole(**changes)
    assert listed(decode(Whole, encode(sent))) == listed(sent)
    assert listed(decode(Whole, encode(sent), N=2, C=2)) == listed(sent)


@pytest.mark.parametrize("changes", [{}, {"part": None}, {"parts": (None,)}])
def test_any_bit_that_is_another_is_noticed(changes: dict[str, Any]) -> None:
    """Also one of a score, which would look like any other."""
    sent = encode(whole(**changes))
    for place in range(0, len(sent), 7):
        damaged = bytearray(sent)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(ValueError, match="checksum"):
            decode(Whole, bytes(damaged))


def test_what_was_cut_short_is_noticed() -> None:
    sent = encode(whole())
    for size in range(len(sent)):
        with pytest.raises(ValueError, match="checksum"):
            decode(Whole, sent[:size])


def damaged(**changes: Any) -> bytes:
    """A message with other values or arrays; None takes one away."""
    values = {
        "name": "a",
        "count": 3,
        "share": 1,
        "kind": "one",
        "words": ["b"],
        "anything": None,
        "parts#": 2,
        "part": True,
        "part.note": "n",
        "parts.1": True,
    }
    arrays = {
        "scores": np.zeros(2),
        "ids": np.zeros(3, np.uint8),
        "ids_offsets": np.array([0, 1, 3]),
        "part.content": np.zeros(4, np.uint8),
    }
    for part in ("part", "parts.1"):
        arrays |= {
            f"{part}.terms": np.zeros(3, np.int32),
            f"{part}.weights": np.zeros((3, 2)),
            f"{part}.names": np.zeros(1, np.uint8),
            f"{part}.names_offsets": np.array([0, 0, 1]),
        }
    for name, value in changes.items():
        of = values if name in values else arrays
        of[name] = value
        if value is None:
            del of[name]
    return pack(Message(values, arrays))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", 3),
        ("name", None),
        ("count", True),
        ("count", -1),
        ("count", 2**60),
        ("share", "x"),
        ("kind", "third"),
        ("words", ["b", 3]),
        ("words", "b"),
        ("scores", np.zeros(3)),
        ("scores", np.zeros(2, np.float32)),
        ("scores", np.zeros((2, 1))),
        ("scores", None),
        ("ids_offsets", np.array([0, 3])),
        ("ids_offsets", np.array([0, 2, 1])),
        ("ids_offsets", np.array([0, 1, 4])),
        ("parts#", 2**40),
        ("parts#", -1),
        ("parts#", None),
        ("part.note", 1),
        ("part.content", np.zeros(4)),
        ("part.terms", np.zeros(2, np.int32)),
        ("part.terms", None),
        ("parts.1.weights", np.zeros((2, 2))),
        ("parts.1.weights", np.zeros(3)),
        ("parts.1.weights", None),
        ("parts.1.names_offsets", np.array([0, 0, 2])),
        ("parts.1.names_offsets", None),
    ],
)
def test_a_field_that_is_no_such_thing_is_refused_by_its_name(name: str, value: Any) -> None:
    assert len(decode(Whole, damaged()).parts) == 2
    with pytest.raises(ValueError, match=r"name|count|share|kind|words|scores|ids|part"):
        decode(Whole, damaged(**{name: value}))


def test_sizes_that_are_known_are_required() -> None:
    for sizes in ({"N": 3}, {"C": 5}):
        with pytest.raises(ValueError, match="size"):
            decode(Whole, damaged(), **sizes)
