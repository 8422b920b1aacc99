"""Where arrays lie in memory, for compiled loops over those of many segments.

A call from Python unpacks each array that it passes in about .3 µs, and a segment has a dozen of them. Loops
over all segments take one table of addresses instead. Whoever calls keeps the arrays until they are done.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from index.compiled import compiled

Array = npt.NDArray[Any]

LINE_BYTES = 64  # of a cache
NEAR_BYTES = 4_096
AHEAD = 8  # rows that loops ask for before one that lies anywhere is read
READ, KEEP, DATA = 0, 2, 1  # what llvm.prefetch is told: 2 leaves the nearest cache to what is in use


def address_of(array: Array, kind: npt.DTypeLike) -> int:
    """Where the first value of a C-contiguous array of a type lies. Raises ValueError for another array."""
    if not array.flags.c_contiguous or array.dtype != kind:
        raise ValueError(
            f"an array of {array.dtype} whose strides are {array.strides} cannot be read as {np.dtype(kind)} "
            "end to end; give one that is so"
        )
    return int(array.__array_interface__["data"][0])


carray: Any = numba.carray  # type: ignore[attr-defined]
declared: Any = cgutils.get_or_insert_function


def _pointer_to(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(types.int64), generate


_pointer: Any = intrinsic(_pointer_to)


@compiled(nogil=True)
def array_at(address: int, shape: Any, kind: Any) -> Any:
    """The values of a type that lie at an address, as many as a shape or a number says; for compiled code
    alone.
    """
    return carray(_pointer(np.int64(address)), shape, kind)


def _prefetch_of(typing_context: Any, address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer] + 3 * [number])
        prefetch = declared(builder.module, kind, "llvm.prefetch.p0")
        hints = [number(hint) for hint in (READ, KEEP, DATA)]
        builder.call(prefetch, [builder.inttoptr(arguments[0], pointer), *hints])
        return _context.get_dummy_value()

    return types.void(types.int64), generate


_prefetch: Any = intrinsic(_prefetch_of)


@compiled(nogil=True)
def bring_near(address: int, size: int) -> None:
    """Asks for so many bytes from an address on, without waiting for them; for compiled code alone.

    Of a long piece only for the beginning: the processor sees by itself how reading goes on.
    """
    for line in range(0, min(size, NEAR_BYTES), LINE_BYTES):
        _prefetch(address + line)
