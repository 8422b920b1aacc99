"""The Vespa application of a collection: its schema with a rank profile for the three-way sum.

Token vectors and dense vectors of windows have a mapped dimension for the window, so that the best window
counts, as in a collection. A document's lexical weights are there twice: as a tensor for exact scores, and as
a weighted set of whole numbers, which `wand` retrieves by.
"""

from __future__ import annotations

import hashlib
import re

from tercet.index.catalog.settings import CollectionSettings
from tercet.transfer.queries import CANDIDATES

WEIGHT_UNIT = 1000  # of a lexical weight of 1 in the weighted set
PROFILE = "tercet"
FIELD_TYPES = {
    "keyword": "array<string>",
    "integer": "long",
    "number": "double",
    "boolean": "bool",
    "datetime": "long",  # microseconds since 1970
}


def vespa_name(name: str) -> str:
    """A collection's or field's name as Vespa allows it."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name if name[0].isalpha() else f"c_{name}")


def field_name(field: str) -> str:
    """The attribute of a declared field; names in other letters are told apart by a part of their hash."""
    name = f"meta_{re.sub(r'[^A-Za-z0-9_]', '_', field)}"
    if re.fullmatch(r"[A-Za-z0-9_.-]+", field):
        return name
    return f"{name}_{hashlib.sha256(field.encode()).hexdigest()[:8]}"


def schema_of(name: str, settings: CollectionSettings) -> str:
    """The `.sd` file of a document type."""
    windows = settings.window is not None
    window = "w{}, " if windows else ""
    dense, colbert = f"x[{settings.dense_dimension}]", f"y[{settings.colbert_dimension}]"
    fields = [
        _field("id", "string", "summary | attribute"),
        _field("title", "string", "index | summary", "index: enable-bm25"),
        _field("text", "string", "index | summary", "index: enable-bm25"),
        _field("metadata", "string", "summary"),
        *(
            _field(field_name(field), FIELD_TYPES[kind], "attribute", "attribute: fast-search")
            for field, kind in sorted(settings.fields.items())
        ),
        _field(
            "dense",
            f"tensor<float>({window}{dense})",
            "attribute | index",
            "attribute {\n    distance-metric: prenormalized-angular\n}",
        ),
        _field("terms", "weightedset<int>", "attribute", "attribute: fast-search"),
        _field("sparse", "tensor<float>(t{})", "attribute"),
    ]
    sides = [
        ("s_dense", _best("sum(query(dense) * attribute(dense), x)", windows=windows)),
        ("s_lex", "sum(query(sparse) * attribute(sparse))"),
    ]
    inputs = [f"query(dense) tensor<float>({dense})", "query(sparse) tensor<float>(t{})"]
    total = "query(weight_dense) * s_dense + query(weight_sparse) * s_lex"
    second = ""
    if settings.stores_token_vectors:
        fields.append(
            _field("colbert", f"tensor<float>({window}j{{}}, {colbert})", "attribute", "attribute: paged")
        )
        products = "sum(query(colbert) * attribute(colbert), y)"
        sides.append(("s_mul", _best(f"reduce(reduce({products}, max, j), avg, i)", windows=windows)))
        inputs.append(f"query(colbert) tensor<float>(i{{}}, {colbert})")
        second = (
            f"\nsecond-phase {{\n    rerank-count: {2 * CANDIDATES}\n"
            f"    expression: {total} + query(weight_colbert) * s_mul\n}}"
        )
    inputs += [f"query(weight_{side}) double: 1.0" for side in ("dense", "sparse", "colbert")]
    functions = [f"function {side}() {{\n    expression: {expression}\n}}" for side, expression in sides]
    profile = "\n".join(
        [
            "inputs {",
            *(f"    {input_line}" for input_line in inputs),
            "}",
            *functions,
            f"first-phase {{\n    expression: {total}\n}}{second}",
            f"match-features: {' '.join(side for side, _ in sides)}",
        ]
    )
    document = "\n".join(fields)
    body = (
        f"document {name} {{\n{_indented(document)}\n}}\nfieldset default {{\n    fields: title, text\n}}\n"
        f"rank-profile {PROFILE} {{\n{_indented(profile)}\n}}"
    )
    return f"schema {name} {{\n{_indented(body)}\n}}\n"


def services_of(name: str) -> str:
    """A `services.xml` of one node, to begin with."""
    return f"""<?xml version="1.0" encoding="utf-8" ?>
<services version="1.0">
  <container id="default" version="1.0">
    <search/>
    <document-api/>
  </container>
  <content id="content" version="1.0">
    <min-redundancy>1</min-redundancy>
    <documents>
      <document type="{name}" mode="index"/>
    </documents>
    <nodes>
      <node hostalias="node1" distribution-key="0"/>
    </nodes>
  </content>
</services>
"""


def _best(expression: str, *, windows: bool) -> str:
    return f"reduce({expression}, max, w)" if windows else expression


def _field(name: str, kind: str, indexing: str, *more: str) -> str:
    lines = "\n".join([f"indexing: {indexing}", *more])
    return f"field {name} type {kind} {{\n{_indented(lines)}\n}}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
