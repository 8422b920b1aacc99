"""Instructions of the processor that compiled loops call: their vectors, loops, and products of bytes.

Inner products of bytes take one instruction where the processor has it (AVX-512 VNNI), and a few where it
multiplies 16-bit numbers; LLVM chooses those from plain vector code, on any processor. Both give the same
sums, to the last bit: no step rounds or saturates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from index.files.addresses import declared

LANES = 16
STEP = 4  # values that one lane takes at a time
OFFSET = 128  # is added to values of one side, since the instructions take that side without sign

BYTE, SHORT, INT, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()


def vector(element: Any, count: int) -> Any:
    """The type of so many values that are worked on together."""
    return ir.VectorType(element, count)


def load(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    """A value, or a vector of values, so many places behind a pointer."""
    loaded = builder.load(builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer()))
    loaded.align = 1
    return loaded


def loop(
    builder: Any,
    first: Any,
    last: Any,
    step: int,
    carried: list[Any],
    body: Callable[[Any, list[Any]], list[Any]],
) -> list[Any]:
    """Goes from `first` in steps while below `last`; body gives what is carried on from place and former."""
    before, function = builder.block, builder.function
    head, inside, after = (function.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    place = builder.phi(LONG)
    place.add_incoming(first, before)
    values = [builder.phi(value.type) for value in carried]
    for value, start in zip(values, carried, strict=True):
        value.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", place, last), inside, after)
    builder.position_at_end(inside)
    following = body(place, values)
    place.add_incoming(builder.add(place, LONG(step)), builder.block)
    for value, new in zip(values, following, strict=True):
        value.add_incoming(new, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return values


def summed(builder: Any, values: Any) -> Any:
    """The sum of a vector's values, halves added to halves."""
    count = values.type.count
    add = builder.fadd if values.type.element in (FLOAT, DOUBLE) else builder.add
    while count > 1:
        count //= 2
        values = add(_some(builder, values, range(count)), _some(builder, values, range(count, 2 * count)))
    return builder.extract_element(values, INT(0))


def _some(builder: Any, values: Any, places: range) -> Any:
    """Those at some places of a vector."""
    mask = ir.Constant(vector(INT, len(places)), list(places))
    return builder.shuffle_vector(values, ir.Constant(values.type, ir.Undefined), mask)


def _pairs(builder: Any, values: Any) -> Any:
    """Sums of the integers at even and odd places."""
    count = values.type.count
    even, odd = (_some(builder, values, range(first, count, 2)) for first in (0, 1))
    return builder.add(even, odd)


class Bytes:
    """Sums of 4 products of bytes for each lane, in one instruction of AVX-512 VNNI."""

    sums = vector(INT, LANES)
    rows = 8  # whose sums fit the registers together

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        operand = vector(BYTE, STEP * LANES)
        self._multiply: Any = declared(
            builder.module,
            ir.FunctionType(self.sums, [self.sums, operand, operand]),
            "llvm.x86.avx512.vpdpbusd.512",
        )

    def signed(self, values: Any) -> Any:
        """64 values with a sign, as `add` takes them."""
        return values

    def unsigned(self, values: Any) -> Any:
        """64 values without one."""
        return values

    def add(self, sums: Any, unsigned: Any, signed: Any) -> Any:
        """The sums with the products of 64 pairs."""
        return self._builder.call(self._multiply, [sums, unsigned, signed])

    def by_lane(self, sums: Any) -> Any:
        """int32[16], of the products that each lane took."""
        return sums


class Shorts:
    """Sums of 2 products of 16-bit numbers for each half of a lane: `vpmaddwd` on x86."""

    sums = vector(INT, 2 * LANES)
    rows = 2  # more do not fit the registers of AVX2

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def signed(self, values: Any) -> Any:
        """64 values with a sign, as `add` takes them."""
        return self._builder.sext(values, vector(SHORT, STEP * LANES))

    def unsigned(self, values: Any) -> Any:
        """64 values without one."""
        return self._builder.zext(values, vector(SHORT, STEP * LANES))

    def add(self, sums: Any, one: Any, other: Any) -> Any:
        """The sums with the products of 64 pairs."""
        wide = vector(INT, STEP * LANES)
        products = self._builder.mul(self._builder.sext(one, wide), self._builder.sext(other, wide))
        return self._builder.add(sums, _pairs(self._builder, products))

    def by_lane(self, sums: Any) -> Any:
        """int32[16], of the products that each lane took."""
        return _pairs(self._builder, sums)


def products_of_bytes(context: Any, builder: Any) -> Bytes | Shorts:
    """Those of the processor that Numba compiles for."""
    _, _, features = context.codegen().magic_tuple()
    return Bytes(builder) if "+avx512vnni" in features.split(",") else Shorts(builder)
