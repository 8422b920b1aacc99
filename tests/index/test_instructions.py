"""Vectors, loops and products of bytes, as compiled loops use them."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from index.files.addresses import address_of
from index.instructions import (
    BYTE,
    FLOAT,
    INT,
    LANES,
    LONG,
    STEP,
    Shorts,
    load,
    loop,
    products_of_bytes,
    summed,
    vector,
)

Emit = Callable[[Any, Any, Any], Any]


def compiled(result: Any, emit: Emit) -> Callable[[int, int], Any]:
    """A function of two integers with the body that `emit` gives from context, builder and arguments."""

    def typed(_typing_context: Any, one: Any, other: Any) -> Any:
        return result(types.int64, types.int64), lambda context, builder, _, arguments: emit(
            context, builder, arguments
        )

    body: Any = intrinsic(typed)
    return numba.njit(lambda one, other: body(one, other))


def pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


@pytest.mark.parametrize(
    ("kind", "scalar", "result"), [(INT, np.int32, types.int32), (FLOAT, np.float32, types.float32)]
)
def test_a_loop_carries_sums_over_all_steps_below_its_end(kind: Any, scalar: Any, result: Any) -> None:
    width = 4

    def total(_: Any, builder: Any, arguments: Any) -> Any:
        address, last = arguments

        def body(place: Any, sums: list[Any]) -> list[Any]:
            add = builder.add if kind == INT else builder.fadd
            return [add(sums[0], load(builder, pointer(builder, address, kind), place, vector(kind, width)))]

        nothing = ir.Constant(vector(kind, width), width * [0])
        return summed(builder, loop(builder, LONG(0), last, width, [nothing], body)[0])

    values, add_up = np.arange(1, 101, dtype=scalar), compiled(result, total)
    address = address_of(values, scalar)
    assert [add_up(address, last) for last in (0, 4, 8, 100)] == [0, 10, 36, 5050]
    assert add_up(address + values.itemsize, 4) == 14  # 2 + 3 + 4 + 5, from wherever it is


@pytest.mark.parametrize("arithmetic", [products_of_bytes, lambda _, builder: Shorts(builder)])
def test_each_lane_sums_four_products_of_bytes(arithmetic: Any) -> None:
    """What this processor has, and what any has, neither of which rounds or saturates."""
    sums = np.zeros(LANES, np.int32)

    def products(context: Any, builder: Any, arguments: Any) -> Any:
        bytes_of = arithmetic(context, builder)
        one, other = (
            load(builder, pointer(builder, address, BYTE), LONG(0), vector(BYTE, STEP * LANES))
            for address in arguments
        )
        nothing = ir.Constant(bytes_of.sums, bytes_of.sums.count * [0])
        found = bytes_of.by_lane(bytes_of.add(nothing, bytes_of.unsigned(one), bytes_of.signed(other)))
        into = builder.inttoptr(LONG(address_of(sums, np.int32)), vector(INT, LANES).as_pointer())
        builder.store(found, into).align = 1
        return INT(0)

    multiply = compiled(types.int32, products)
    unsigned, signed = np.full(STEP * LANES, 255, np.uint8), np.full(STEP * LANES, -128, np.int8)
    multiply(address_of(unsigned, np.uint8), address_of(signed, np.int8))
    assert sums.tolist() == LANES * [4 * 255 * -128]
    unsigned[:8], signed[:8] = [1, 2, 3, 4, 5, 6, 7, 8], [1, 1, 1, 1, -1, 0, 1, 10]
    multiply(address_of(unsigned, np.uint8), address_of(signed, np.int8))
    assert sums[:3].tolist() == [1 + 2 + 3 + 4, -5 + 7 + 80, 4 * 255 * -128]
