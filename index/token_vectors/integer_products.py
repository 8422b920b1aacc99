"""Inner products of 8-bit vectors, many at a time, by the processor's own instructions.

A tile of `TILE` document tokens meets groups of `LANES` query tokens. Four values of a document token go to
all lanes at once, so no sum ever crosses lanes: a group costs one instruction for 4 x 16 products where the
processor multiplies bytes (VNNI), and a few where it multiplies 16-bit numbers. LLVM chooses those from
plain vector code, on any processor. Both give the same sums, to the last bit: no step rounds or saturates.

Document values are stored with 128 added, since the instructions take one unsigned side; who calls subtracts
128 times the query's sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

TILE = 8
LANES = 16
STEP = 4  # values of a token that one lane takes at a time
OFFSET = 128
VALUES_AT_ONCE = STEP * LANES  # tiles have a multiple of these


_BYTE, _SHORT, _INT, _LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_FLOAT = ir.FloatType()
_declared: Any = cgutils.get_or_insert_function


def _compiled(function: Callable[..., tuple[Any, Any]]) -> Any:
    """What compiled code calls: `function` gives the types and generates the code."""
    return intrinsic(function)


def _vector(element: Any, count: int) -> Any:
    return ir.VectorType(element, count)


def _load(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    loaded = builder.load(builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer()))
    loaded.align = 1
    return loaded


def _to_all(builder: Any, value: Any, count: int) -> Any:
    kind = _vector(value.type, count)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _INT(0))
    places = ir.Constant(_vector(_INT, count), [0] * count)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), places)


def _store(builder: Any, pointer: Any, values: Any) -> None:
    builder.store(values, builder.bitcast(pointer, values.type.as_pointer())).align = 4


def _pairs(builder: Any, values: Any, count: int) -> Any:
    """Sums of the integers at even and odd places."""
    nothing = ir.Constant(values.type, ir.Undefined)
    even, odd = (
        builder.shuffle_vector(
            values, nothing, ir.Constant(_vector(_INT, count // 2), list(range(first, count, 2)))
        )
        for first in (0, 1)
    )
    return builder.add(even, odd)


class _Bytes:
    """Sums of 4 products of bytes for each lane, in one instruction of AVX-512 VNNI."""

    sums = _vector(_INT, LANES)
    tokens = TILE

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        operand = _vector(_BYTE, STEP * LANES)
        self._multiply: Any = _declared(
            builder.module,
            ir.FunctionType(self.sums, [self.sums, operand, operand]),
            "llvm.x86.avx512.vpdpbusd.512",
        )

    def of_query(self, values: Any) -> Any:
        return values

    def of_document(self, values: Any) -> Any:
        return values

    def add(self, sums: Any, document: Any, query: Any) -> Any:
        return self._builder.call(self._multiply, [sums, document, query])

    def by_lane(self, sums: Any) -> Any:
        return sums


class _Shorts:
    """Sums of 2 products of 16-bit numbers for each half of a lane: `vpmaddwd` on x86."""

    sums = _vector(_INT, 2 * LANES)
    tokens = 2  # more do not fit the registers of AVX2

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def of_query(self, values: Any) -> Any:
        return self._builder.sext(values, _vector(_SHORT, STEP * LANES))

    def of_document(self, values: Any) -> Any:
        return self._builder.zext(values, _vector(_SHORT, STEP * LANES))

    def add(self, sums: Any, document: Any, query: Any) -> Any:
        wide = _vector(_INT, STEP * LANES)
        products = self._builder.mul(self._builder.sext(document, wide), self._builder.sext(query, wide))
        return self._builder.add(sums, _pairs(self._builder, products, STEP * LANES))

    def by_lane(self, sums: Any) -> Any:
        return _pairs(self._builder, sums, 2 * LANES)


def _multiplies_bytes(context: Any) -> bool:
    """Whether what Numba compiles for has AVX-512 VNNI."""
    _, _, features = context.codegen().magic_tuple()
    return "+avx512vnni" in features.split(",")


@_compiled
def multiply(
    typing_context: Any, query: Any, group: Any, tile: Any, values: Any, products: Any
) -> tuple[Any, Any]:
    """multiply(query, group, tile, values, products): inner products of a group of query tokens and a tile.

    query: int8[G, S/4, 16, 4]; tile: uint8[8, S], 128 added; values: S, a multiple of 4; products: int32[8,
    16], is written. All lie in one piece.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def keep(token: int, total: Any) -> None:
            pointer = builder.gep(results, [_LONG(token * LANES)])
            _store(builder, pointer, total)

        queries, tiles, results = _data(context, builder, signature, arguments)
        _multiply(context, builder, queries, arguments[1], tiles, arguments[3], keep)
        return context.get_dummy_value()

    return types.void(query, group, tile, values, products), generate


@_compiled
def raise_best(
    typing_context: Any, query: Any, group: Any, tile: Any, values: Any, sums: Any, scales: Any, best: Any
) -> tuple[Any, Any]:
    """raise_best(query, group, tile, values, sums, scales, best): the best products so far, and of a tile.

    sums: int32[G, 16], taken from the products, which are then multiplied by scales: float32[8], of each
    token of the tile; best: float32[G, 16], whose row `group` is raised to the largest of them. The rest is
    as in `multiply`.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _raise(context, builder, signature, arguments)
        return context.get_dummy_value()

    return types.void(query, group, tile, values, sums, scales, best), generate


@_compiled
def raise_best_and_mark(
    typing_context: Any,
    query: Any,
    group: Any,
    tile: Any,
    values: Any,
    sums: Any,
    scales: Any,
    best: Any,
    margins: Any,
    longest: Any,
    marks: Any,
) -> tuple[Any, Any]:
    """raise_best_and_mark(query, group, tile, values, sums, scales, best, margins, longest, marks): as
    `raise_best`, and which products are then near the best.

    margins: float32[G, 16], of which `longest` float32 times as much is near; marks: uint16[8], is written:
    of each token of the tile a bit for each lane, the lowest for the first.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        products, best_of_all = _raise(context, builder, signature, arguments)
        allowed, results = _data(context, builder, signature, arguments)[-2:]
        start = builder.mul(arguments[1], _LONG(LANES))
        margin = builder.fmul(
            _load(builder, allowed, start, best_of_all.type), _to_all(builder, arguments[8], LANES)
        )
        needed = builder.fsub(best_of_all, margin)
        for token, product in enumerate(products):
            near = builder.bitcast(builder.fcmp_ordered(">=", product, needed), _SHORT)
            builder.store(near, builder.gep(results, [_LONG(token)]))
        return context.get_dummy_value()

    kinds = (query, group, tile, values, sums, scales, best, margins, longest, marks)
    return types.void(*kinds), generate


def _raise(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[list[Any], Any]:
    """What `raise_best` does: the products with each token of the tile, and the best: float32[16] each."""

    def take(token: int, total: Any) -> None:
        scale = _to_all(builder, _load(builder, factors, _LONG(token), _FLOAT), LANES)
        products.append(builder.fmul(builder.sitofp(builder.sub(total, of_query), floats), scale))

    queries, tiles, subtracted, factors, results = _data(context, builder, signature, arguments)[:5]
    products: list[Any] = []
    floats = _vector(_FLOAT, LANES)
    start = builder.mul(arguments[1], _LONG(LANES))
    of_query = _load(builder, subtracted, start, _vector(_INT, LANES))
    best = _load(builder, results, start, floats)
    _multiply(context, builder, queries, arguments[1], tiles, arguments[3], take)
    for product in products:
        best = builder.select(builder.fcmp_ordered(">", product, best), product, best)
    _store(builder, builder.gep(results, [start]), best)
    return products, best


@_compiled
def square_sums(typing_context: Any, tile: Any, values: Any, squares: Any) -> tuple[Any, Any]:
    """square_sums(tile, values, squares): of each token of a tile the sum of its squared values.

    tile: uint8[8, S], 128 added, which does not count; values: S, a multiple of 64; squares: int32[8], is
    written.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tiles, results = _data(context, builder, signature, arguments)
        shorts = _vector(_SHORT, VALUES_AT_ONCE)
        arithmetic = _Shorts(builder)
        for token in range(TILE):
            row = builder.mul(arguments[1], _LONG(token))
            zero = ir.Constant(arithmetic.sums, [0] * arithmetic.sums.count)
            with _Loop(builder, arguments[1], VALUES_AT_ONCE, [zero]) as loop:
                stored = _load(builder, tiles, builder.add(row, loop.place), _vector(_BYTE, VALUES_AT_ONCE))
                offset = ir.Constant(shorts, [OFFSET] * VALUES_AT_ONCE)
                value = builder.sub(builder.zext(stored, shorts), offset)
                loop.following = [arithmetic.add(loop.values[0], value, value)]
            total, count = arithmetic.by_lane(loop.following[0]), LANES
            while count > 1:
                total, count = _pairs(builder, total, count), count // 2
            first = builder.extract_element(total, _INT(0))
            builder.store(first, builder.gep(results, [_LONG(token)]))
        return context.get_dummy_value()

    return types.void(tile, values, squares), generate


class _Loop:
    """A loop over places from 0 up to an end, with values that each round replaces by `following`."""

    def __init__(self, builder: Any, end: Any, step: int, start: list[Any]) -> None:
        self._builder, self._end, self._step, self._start = builder, end, step, start
        self.following: list[Any] = []

    def __enter__(self) -> _Loop:
        builder = self._builder
        before, self._body = builder.block, builder.append_basic_block("body")
        builder.branch(self._body)
        builder.position_at_end(self._body)
        self.place = builder.phi(_LONG)
        self.place.add_incoming(_LONG(0), before)
        self.values = []
        for value in self._start:
            self.values.append(builder.phi(value.type))
            self.values[-1].add_incoming(value, before)
        return self

    def __exit__(self, *_: object) -> None:
        builder, after = self._builder, self._builder.append_basic_block("after")
        place = builder.add(self.place, _LONG(self._step))
        self.place.add_incoming(place, self._body)
        for value, following in zip(self.values, self.following, strict=True):
            value.add_incoming(following, self._body)
        builder.cbranch(builder.icmp_signed("<", place, self._end), self._body, after)
        builder.position_at_end(after)


def _multiply(
    context: Any,
    builder: Any,
    queries: Any,
    group: Any,
    tile: Any,
    values: Any,
    take: Callable[[int, Any], None],
) -> None:
    """Sums in registers for some tokens at a time, each then taken: int32[16] of its place in the tile."""
    arithmetic = _Bytes(builder) if _multiplies_bytes(context) else _Shorts(builder)
    query = builder.gep(queries, [builder.mul(group, builder.mul(values, _LONG(LANES)))])
    operand = _vector(_BYTE, STEP * LANES)
    zero = ir.Constant(arithmetic.sums, [0] * arithmetic.sums.count)
    for start in range(0, TILE, arithmetic.tokens):
        tokens = range(start, start + arithmetic.tokens)
        with _Loop(builder, values, STEP, [zero] * len(tokens)) as loop:
            place = builder.mul(loop.place, _LONG(LANES))
            of_query = arithmetic.of_query(_load(builder, query, place, operand))
            for token, total in zip(tokens, loop.values, strict=True):
                row = builder.add(loop.place, builder.mul(values, _LONG(token)))
                four = _to_all(builder, _load(builder, tile, row, _INT), LANES)
                document = arithmetic.of_document(builder.bitcast(four, operand))
                loop.following.append(arithmetic.add(total, document, of_query))
        for token, total in zip(tokens, loop.following, strict=True):
            take(token, arithmetic.by_lane(total))


def _data(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Pointers to the values of the arrays among the arguments."""
    return [
        context.make_array(kind)(context, builder, argument).data
        for kind, argument in zip(signature.args, arguments, strict=True)
        if isinstance(kind, types.Array)
    ]
