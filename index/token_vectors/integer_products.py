"""Inner products of 8-bit vectors, many at a time, by the processor's own instructions.

A tile of `TILE` document tokens meets groups of `LANES` query tokens. Four values of a document token go to
all lanes at once, so no sum ever crosses lanes: a group costs one instruction for 4 x 16 products where the
processor multiplies bytes, and a few where it does not (`index/instructions.py`).

Document values are stored with 128 added; who calls subtracts 128 times the query's sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from index.instructions import (
    BYTE,
    FLOAT,
    INT,
    LANES,
    LONG,
    OFFSET,
    SHORT,
    STEP,
    Shorts,
    load,
    loop,
    products_of_bytes,
    summed,
    vector,
)

TILE = 8
VALUES_AT_ONCE = STEP * LANES  # tiles have a multiple of these


def _compiled(function: Callable[..., tuple[Any, Any]]) -> Any:
    """What compiled code calls: `function` gives the types and generates the code."""
    return intrinsic(function)


def _to_all(builder: Any, value: Any, count: int) -> Any:
    kind = vector(value.type, count)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, INT(0))
    places = ir.Constant(vector(INT, count), [0] * count)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), places)


def _store(builder: Any, pointer: Any, values: Any) -> None:
    builder.store(values, builder.bitcast(pointer, values.type.as_pointer())).align = 4


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
            pointer = builder.gep(results, [LONG(token * LANES)])
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
        start = builder.mul(arguments[1], LONG(LANES))
        margin = builder.fmul(
            load(builder, allowed, start, best_of_all.type), _to_all(builder, arguments[8], LANES)
        )
        needed = builder.fsub(best_of_all, margin)
        for token, product in enumerate(products):
            near = builder.bitcast(builder.fcmp_ordered(">=", product, needed), SHORT)
            builder.store(near, builder.gep(results, [LONG(token)]))
        return context.get_dummy_value()

    kinds = (query, group, tile, values, sums, scales, best, margins, longest, marks)
    return types.void(*kinds), generate


def _raise(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[list[Any], Any]:
    """What `raise_best` does: the products with each token of the tile, and the best: float32[16] each."""

    def take(token: int, total: Any) -> None:
        scale = _to_all(builder, load(builder, factors, LONG(token), FLOAT), LANES)
        products.append(builder.fmul(builder.sitofp(builder.sub(total, of_query), floats), scale))

    queries, tiles, subtracted, factors, results = _data(context, builder, signature, arguments)[:5]
    products: list[Any] = []
    floats = vector(FLOAT, LANES)
    start = builder.mul(arguments[1], LONG(LANES))
    of_query = load(builder, subtracted, start, vector(INT, LANES))
    best = load(builder, results, start, floats)
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
        shorts = vector(SHORT, VALUES_AT_ONCE)
        arithmetic = Shorts(builder)
        for token in range(TILE):
            row = builder.mul(arguments[1], LONG(token))

            def squared(place: Any, sums: list[Any], row: Any = row) -> list[Any]:
                stored = load(builder, tiles, builder.add(row, place), vector(BYTE, VALUES_AT_ONCE))
                offset = ir.Constant(shorts, [OFFSET] * VALUES_AT_ONCE)
                value = builder.sub(builder.zext(stored, shorts), offset)
                return [arithmetic.add(sums[0], value, value)]

            zero = ir.Constant(arithmetic.sums, [0] * arithmetic.sums.count)
            (total,) = loop(builder, LONG(0), arguments[1], VALUES_AT_ONCE, [zero], squared)
            builder.store(summed(builder, total), builder.gep(results, [LONG(token)]))
        return context.get_dummy_value()

    return types.void(tile, values, squares), generate


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
    arithmetic = products_of_bytes(context, builder)
    query = builder.gep(queries, [builder.mul(group, builder.mul(values, LONG(LANES)))])
    operand = vector(BYTE, STEP * LANES)
    zero = ir.Constant(arithmetic.sums, [0] * arithmetic.sums.count)
    for start in range(0, TILE, arithmetic.rows):
        tokens = range(start, start + arithmetic.rows)

        def multiplied(place: Any, sums: list[Any], tokens: range = tokens) -> list[Any]:
            of_query = arithmetic.signed(load(builder, query, builder.mul(place, LONG(LANES)), operand))
            following = []
            for token, total in zip(tokens, sums, strict=True):
                row = builder.add(place, builder.mul(values, LONG(token)))
                four = _to_all(builder, load(builder, tile, row, INT), LANES)
                document = arithmetic.unsigned(builder.bitcast(four, operand))
                following.append(arithmetic.add(total, document, of_query))
            return following

        totals = loop(builder, LONG(0), values, STEP, [zero] * len(tokens), multiplied)
        for token, total in zip(tokens, totals, strict=True):
            take(token, arithmetic.by_lane(total))


def _data(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Pointers to the values of the arrays among the arguments."""
    return [
        context.make_array(kind)(context, builder, argument).data
        for kind, argument in zip(signature.args, arguments, strict=True)
        if isinstance(kind, types.Array)
    ]
