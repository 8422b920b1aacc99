"""Single requests that would stop an event loop if their size were not bounded or their work not cut."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

SEED = 20261122
JSON = "application/json"
BINARY = "application/x-safetensors"
BODY_BYTES = 8 << 20  # the limit of a body


@dataclass(frozen=True, slots=True)
class Large:
    """One request: what it is, where it goes, and what it asks for."""

    name: str
    path: str
    body: bytes
    method: str = "POST"
    accept: str = JSON


def long_texts(sources: list[str], count: int, words: int = 800) -> list[str]:
    """Texts of different words; 800 of them are more tokens than the encoder takes."""
    chance = random.Random(SEED)
    vocabulary = " ".join(sources).split()
    return [" ".join(chance.choices(vocabulary, k=words)) for _ in range(count)]


def large_requests(texts: list[str], long_query: str, hits: int) -> Iterator[Large]:
    """texts: for answers of many slices; long_query: of as many tokens as the encoder takes; hits: of the
    collection `long`.
    """
    yield from _answers(texts, long_query, hits)
    yield from _texts()
    yield from _structures()
    yield from _fuzzed()


def _answers(texts: list[str], long_query: str, hits: int) -> Iterator[Large]:
    for name, accept, options in [
        ("float", JSON, {}),
        ("base64", JSON, {"encoding": "base64"}),
        ("safetensors", BINARY, {}),
    ]:
        yield Large(
            f"embed {len(texts)} long texts, {name}", "/embed", _json(inputs=texts, **options), accept=accept
        )
    yield Large(
        "rerank 1024 short texts",
        "/rerank",
        _json(query="tea", documents=[t[:20] for t in texts * 1024][:1024]),
    )
    yield Large(f"rerank {len(texts)} long texts", "/rerank", _json(query=long_query, documents=texts))
    wide = {"top_k": hits, "candidates": {"dense": hits, "sparse": hits}}
    yield Large("search, all long documents", "/search", _json(collection="long", query="tea", **wide))
    for query in (long_query, " ".join(long_query.split()[:250])):
        explained = _json(collection="demo", query=query, explain=True, **{**wide, "top_k": 200})
        yield Large(f"explain 200 hits, {len(query.split())} words", "/search", explained)


def _texts() -> Iterator[Large]:
    each = BODY_BYTES // 80 - 1000
    for name, text in [
        ("ascii", "tea, or \\"),
        ("quotes", 'a "b"\n'),
        ("Korean", "한국어 차 "),
        ("control", "\x01"),
    ]:
        for escaped in (False, True):
            size = len(json.dumps(text, ensure_ascii=escaped).encode()) - 2
            body = _json(_ascii=escaped, inputs=[text * (each // size)] * 79, outputs=["dense"], max_length=8)
            yield Large(f"embed 8 MiB of {name}, escaped={escaped}", "/embed", body)
    one = "a" * (BODY_BYTES - 100)
    yield Large("embed one text of 8 MiB", "/embed", _json(inputs=one))
    yield Large("search with a query of 8 MiB", "/search", _json(collection="demo", query=one))
    yield Large("job with a source of 8 MiB", "/collections/demo/jobs", _json(source=one))


def _structures() -> Iterator[Large]:
    def filled(before: str, item: str, after: str) -> bytes:
        return (before + item * ((BODY_BYTES - 200) // len(item)) + after).encode()

    search = '{"collection":"demo","query":"tea",'
    yield Large("embed 2 million texts", "/embed", filled('{"inputs":[', '"",', '""]}'))
    yield Large("rerank 2 million texts", "/rerank", filled('{"query":"a","documents":[', '"",', '""]}'))
    yield Large(
        "query of 4 million numbers",
        "/search",
        filled('{"collection":"demo","query":{"dense":[', "0,", "0]}}"),
    )
    yield Large(
        "query of a million rows",
        "/search",
        filled('{"collection":"demo","query":{"colbert":[', "[0.25],", "[0]]}}"),
    )
    yield Large(
        "filter of 4 million values", "/search", filled(search + '"filter":{"in":{"lang":[', "0,", "0]}}}")
    )
    yield Large(
        "filter of half a million conditions",
        "/search",
        filled(search + '"filter":{"and":[', '{"exists":"a"},', "{}]}}"),
    )
    yield Large("nesting without end", "/search", filled(search + '"filter":', '{"not":', "0"))
    yield Large("lists without end", "/embed", filled('{"inputs":', "[", ""))
    keys = ",".join(f'"{number}":0' for number in range(600_000))
    yield Large("600,000 unknown fields", "/search", f"{{{keys}}}".encode())
    yield Large("600,000 declared fields", "/collections/fields", f'{{"fields":{{{keys}}}}}'.encode(), "PUT")
    yield Large("8 MiB of blanks", "/embed", b" " * (BODY_BYTES - 1))
    yield Large("8 MiB of backslashes", "/embed", b'{"inputs":"' + b"\\" * (BODY_BYTES - 20) + b'"}')
    yield Large("8 MiB of quotes", "/embed", b'"' * (BODY_BYTES - 1))
    yield Large("8 MiB cut off", "/embed", filled('{"inputs":["', "tea ", ""))
    rows = np.random.default_rng(SEED).normal(size=(512, 128)).round(7)
    yield Large(
        "query of 512 token vectors",
        "/search",
        _json(
            collection="demo",
            query={"colbert": rows.tolist()},
            weights={"dense": 0, "sparse": 0},
            candidates={"dense": 0, "sparse": 10},
        ),
    )


def _fuzzed() -> Iterator[Large]:
    """Random values of random shape in random fields, at the largest numbers of values that are taken."""
    chance = random.Random(SEED)
    leaves = ["0", "1.5e300", "true", "null", '""', '"tea"', "-17", '"\\ud55c\\uad6d"', "[]", "{}"]
    fields = {
        "/embed": ["inputs", "outputs", "input_type", "max_length", "nothing"],
        "/search": ["query", "filter", "weights", "candidates", "search_options"],
        "/rerank": ["documents", "query", "weights"],
    }
    for number in range(30):
        path = chance.choice(list(fields))
        leaf, opening = (
            chance.choice(leaves),
            chance.choice(["[", '{"dense":[', '{"token_ids":[', '{"in":{"a":[', "[["]),
        )
        closing = "".join({"[": "]", "{": "}"}[mark] for mark in reversed(opening) if mark in "[{")
        values = ",".join([leaf] * chance.choice([1000, 70_000, 149_000]))
        field = chance.choice(fields[path])
        body = f'{{"collection":"demo","inputs":"a","{field}":{opening}{values}{closing}}}'
        yield Large(f"fuzzed {number}: {path} {field} {opening}{leaf}", path, body.encode())


def _json(*, _ascii: bool = False, **fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=_ascii).encode()
