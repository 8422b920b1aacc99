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

from index.instructions import DOUBLE, FLOAT, HALF, INT, LONG, SHORT, load, loop, summed, vector

HALF_BYTES = 2
LANES_BYTES = 64
CHAINS = 4  # sums that do not wait for each other
_BIAS = 2.0**112  # by which bits of a float16 at their places in a float32 are too small


def _converts() -> bool:
    """Whether the processor that code is compiled for has float16."""
    if any(os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")):
        return False  # maybe an older one than this
    return platform.machine() == "aarch64" or bool(binding.get_host_cpu_features().get("f16c", False))


_CONVERTS = _converts()


def _widened(builder: Any, pointer: Any, count: int) -> Any:
    """`count` float16 values at a pointer to 16-bit integers, as float32."""
    loaded = load(builder, pointer, LONG(0), vector(SHORT, count))
    floats = vector(FLOAT, count)
    if _CONVERTS:
        return builder.fpext(builder.bitcast(loaded, vector(HALF, count)), floats)
    integers = vector(INT, count)

    def all_of(value: int) -> Any:
        return ir.Constant(integers, [value] * count)

    bits = builder.zext(loaded, integers)
    sign = builder.shl(builder.and_(bits, all_of(0x8000)), all_of(16))
    rest = builder.shl(builder.and_(bits, all_of(0x7FFF)), all_of(13))
    placed = builder.bitcast(builder.or_(sign, rest), floats)
    return builder.fmul(placed, ir.Constant(floats, [_BIAS] * count))


def _of_type(number: Any, element: Any) -> Any:
    """The product that is added up in a type: of Numba, and of LLVM."""
    lanes = LANES_BYTES * 8 // number.bitwidth
    step = lanes * CHAINS

    def stored(builder: Any, pointer: Any, count: int) -> Any:
        values = _widened(builder, pointer, count)
        return values if element == FLOAT else builder.fpext(values, vector(element, count))

    def _product(_typing: Any, row: Any, dimension: Any, query: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, length, asked = arguments
            halves = builder.inttoptr(address, SHORT.as_pointer())
            values_of_query = vector(element, lanes)

            def at_once(place: Any, sums: list[Any]) -> list[Any]:
                found = []
                for chain, former in enumerate(sums):
                    here = builder.add(place, LONG(chain * lanes))
                    loaded = load(builder, asked, here, values_of_query)
                    values = stored(builder, builder.gep(halves, [here]), lanes)
                    found.append(builder.fadd(former, builder.fmul(values, loaded)))
                return found

            def singly(place: Any, sums: list[Any]) -> list[Any]:
                values = stored(builder, builder.gep(halves, [place]), 1)
                one = builder.extract_element(values, INT(0))
                return [builder.fadd(sums[0], builder.fmul(one, builder.load(builder.gep(asked, [place]))))]

            zeros = ir.Constant(values_of_query, [0.0] * lanes)
            whole = builder.and_(length, LONG(-step))
            first, second, third, fourth = loop(builder, LONG(0), whole, step, [zeros] * CHAINS, at_once)
            together = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
            (total,) = loop(builder, whole, length, 1, [summed(builder, together)], singly)
            return total

        del row, dimension, query
        return number(_NUMBERS.int64, _NUMBERS.int64, _NUMBERS.CPointer(number)), generate

    return intrinsic(_product)


_NUMBERS: Any = types

product: Any = _of_type(_NUMBERS.float32, FLOAT)
"""Of the float16 row at an address and a query of so many float32 values: for compiled code alone."""

exact_product: Any = _of_type(_NUMBERS.float64, DOUBLE)
"""The same of a query of float64 values, added up in float64."""
