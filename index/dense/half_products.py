"""Inner products of a query with stored float16 rows, at the speed at which memory gives them.

A row's product is added up alike wherever it lies, so equal rows have equal products to the last bit. Where
the processor converts float16 (F16C on x86, every 64-bit ARM), it does; elsewhere bits are shifted to their
places.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

HALF_BYTES = 2
LANES_BYTES = 64
CHAINS = 4  # sums that do not wait for each other

_SHORT, _INT, _LONG = (ir.IntType(bits) for bits in (16, 32, 64))
_HALF, _FLOAT, _DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_BIAS = 2.0**112  # by which bits of a float16 at their places in a float32 are too small


def _converts() -> bool:
    """Whether the processor that code is compiled for has float16."""
    if any(os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")):
        return False  # maybe an older one than this
    return platform.machine() == "aarch64" or bool(binding.get_host_cpu_features().get("f16c", False))


_CONVERTS = _converts()


def _vector(element: Any, count: int) -> Any:
    return ir.VectorType(element, count)


def _widened(builder: Any, pointer: Any, count: int) -> Any:
    """`count` float16 values at a pointer to 16-bit integers, as float32."""
    loaded = builder.load(builder.bitcast(pointer, _vector(_SHORT, count).as_pointer()))
    loaded.align = 2
    floats = _vector(_FLOAT, count)
    if _CONVERTS:
        return builder.fpext(builder.bitcast(loaded, _vector(_HALF, count)), floats)
    integers = _vector(_INT, count)

    def all_of(value: int) -> Any:
        return ir.Constant(integers, [value] * count)

    bits = builder.zext(loaded, integers)
    sign = builder.shl(builder.and_(bits, all_of(0x8000)), all_of(16))
    rest = builder.shl(builder.and_(bits, all_of(0x7FFF)), all_of(13))
    placed = builder.bitcast(builder.or_(sign, rest), floats)
    return builder.fmul(placed, ir.Constant(floats, [_BIAS] * count))


def _loop(builder: Any, first: Any, last: Any, step: int, carried: list[Any], body: Any) -> list[Any]:
    """Goes from `first` in steps while below `last`; body gives what is carried on from place and former."""
    before, function = builder.block, builder.function
    head, inside, after = (function.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    place = builder.phi(_LONG)
    place.add_incoming(first, before)
    values = [builder.phi(value.type) for value in carried]
    for value, start in zip(values, carried, strict=True):
        value.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", place, last), inside, after)
    builder.position_at_end(inside)
    following = body(place, values)
    place.add_incoming(builder.add(place, _LONG(step)), builder.block)
    for value, new in zip(values, following, strict=True):
        value.add_incoming(new, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return values


def _summed(builder: Any, vector: Any) -> Any:
    """The sum of a vector's values, halves added to halves."""
    count = vector.type.count
    while count > 1:
        count //= 2
        halves = [
            builder.shuffle_vector(
                vector,
                ir.Constant(vector.type, ir.Undefined),
                ir.Constant(_vector(_INT, count), list(range(start, start + count))),
            )
            for start in (0, count)
        ]
        vector = builder.fadd(*halves)
    return builder.extract_element(vector, _INT(0))


def _of_type(number: Any, element: Any) -> Any:
    """The product that is added up in a type: of Numba, and of LLVM."""
    lanes = LANES_BYTES * 8 // number.bitwidth
    step = lanes * CHAINS

    def stored(builder: Any, pointer: Any, count: int) -> Any:
        values = _widened(builder, pointer, count)
        return values if element == _FLOAT else builder.fpext(values, _vector(element, count))

    def _product(_typing: Any, row: Any, dimension: Any, query: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, length, asked = arguments
            halves = builder.inttoptr(address, _SHORT.as_pointer())
            vector = _vector(element, lanes)

            def at_once(place: Any, sums: list[Any]) -> list[Any]:
                found = []
                for chain, former in enumerate(sums):
                    here = builder.add(place, _LONG(chain * lanes))
                    loaded = builder.load(builder.bitcast(builder.gep(asked, [here]), vector.as_pointer()))
                    loaded.align = number.bitwidth // 8
                    values = stored(builder, builder.gep(halves, [here]), lanes)
                    found.append(builder.fadd(former, builder.fmul(values, loaded)))
                return found

            def singly(place: Any, sums: list[Any]) -> list[Any]:
                values = stored(builder, builder.gep(halves, [place]), 1)
                one = builder.extract_element(values, _INT(0))
                return [builder.fadd(sums[0], builder.fmul(one, builder.load(builder.gep(asked, [place]))))]

            zeros = ir.Constant(vector, [0.0] * lanes)
            whole = builder.and_(length, _LONG(-step))
            first, second, third, fourth = _loop(builder, _LONG(0), whole, step, [zeros] * CHAINS, at_once)
            together = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
            (total,) = _loop(builder, whole, length, 1, [_summed(builder, together)], singly)
            return total

        del row, dimension, query
        return number(_NUMBERS.int64, _NUMBERS.int64, _NUMBERS.CPointer(number)), generate

    return intrinsic(_product)


_NUMBERS: Any = types

product: Any = _of_type(_NUMBERS.float32, _FLOAT)
"""Of the float16 row at an address and a query of so many float32 values: for compiled code alone."""

exact_product: Any = _of_type(_NUMBERS.float64, _DOUBLE)
"""The same of a query of float64 values, added up in float64."""
