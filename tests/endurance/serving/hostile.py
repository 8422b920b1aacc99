"""Requests that no honest client sends: made from honest ones, by a seeded source of mistakes and malice."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Headers = tuple[tuple[bytes, bytes], ...]
JSON: Headers = ((b"Content-Type", b"application/json"),)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it goes over the wire. whole: whether it is HTTP, complete, and so must be answered."""

    method: bytes
    target: bytes
    headers: Headers = JSON
    body: bytes = b""
    whole: bool = True
    wire: bytes | None = None  # instead of all of the above

    def to_bytes(self) -> bytes:
        """The bytes to send."""
        if self.wire is not None:
            return self.wire
        length: Headers = ((b"Content-Length", str(len(self.body)).encode()),)
        framing = () if any(name.lower() in FRAMING for name, _ in self.headers) else length
        lines = [name + b": " + value for name, value in ((b"Host", b"localhost"), *self.headers, *framing)]
        return b"\r\n".join([self.method + b" " + self.target + b" HTTP/1.1", *lines, b"", self.body])


FRAMING = {b"content-length", b"transfer-encoding"}
HONEST = (
    Request(b"POST", b"/embed", JSON, b'{"inputs": ["tea", "hot water"]}'),
    Request(b"POST", b"/embed", JSON, b'{"inputs": "tea", "outputs": ["dense"], "dimensions": 4}'),
    Request(
        b"POST",
        b"/search",
        JSON,
        b'{"collection": "demo", "query": "hot tea", "filter": {"in": {"lang": ["en"]}}, "explain": true}',
    ),
    Request(
        b"POST",
        b"/search",
        JSON,
        b'{"collection": "demo", "query": "tea", "top_k": 3, "weights": {"dense": 1, "sparse": 0.3}, '
        b'"candidates": {"dense": 20, "sparse": 0}, "search_options": {"ef_search": 10}, "filter": {"and": '
        b'[{"eq": {"lang": "en"}}, {"or": [{"gt": {"topic": "c"}}, {"not": {"exists": "topic"}}]}]}}',
    ),
    Request(
        b"POST",
        b"/search",
        JSON,
        b'{"collection": "demo", "query": {"sparse": {"token_ids": [2000, 3000], "weights": [0.5, 1]}}, '
        b'"weights": {"dense": 0, "sparse": 1, "colbert": 0}, "candidates": {"dense": 0, "sparse": 10}}',
    ),
    Request(b"POST", b"/search", JSON, b'{"collection": "demo", "query": {"dense": [1]}, "top_k": 2}'),
    Request(b"POST", b"/rerank", JSON, b'{"query": "tea", "inputs": ["tea", "train"], "weights": "sum"}'),
    Request(b"PUT", b"/collections/made", JSON, b'{"fields": {"year": "integer"}}'),
    Request(b"POST", b"/collections/made/jobs", JSON, b'{"source": "../../etc/passwd"}'),
)
VALUES = (
    *(b"null", b"true", b"-1", b"0", b"1e400", b"NaN", b"Infinity", b"1" + b"0" * 400, b"0.1", b"-0.0"),
    *(b"99999999999999999999", b"1e308", b"2147483648", b"9007199254740993", b"0x10", b"01", b"1.", b"+1"),
    *(b'""', b'"demo"', b'"sum"', b'"\\u0000"', b'"\\ud800"', b'"\\udfff\\ud800"', b'"\xff"', b'"\xc0\xaf"'),
    *(b'"' + b"A" * 5000 + b'"', b'"' + b"tea " * 200 + b'"', b'"\x00"', b'"\\x41"', b"'tea'"),
    *(b"[]", b"{}", b"[[]]", b'{"":{}}', b"[1e39]", b"[null]", b"[" + b"0," * 2000 + b"0]", b"[NaN]"),
    *(b'{"dense":[]}', b'{"dense":1,"dense":-1}', b'{"token_ids":[1],"weights":[1]}', b'["dense","dense"]'),
    *(b'{"and":[]}', b'{"not":{"not":{"exists":"x"}}}', b'{"eq":{"year":1e308}}', b'{"in":{"year":[true]}}'),
    *(b'{"or":[{"eq":{"year":"\\ud800"}}]}', b'{"lt":{"year":1' + b"0" * 30 + b"}}", b'"../../etc/passwd"'),
    *(b'"%2e%2e%2f"', b'"law:tag"', '"🍵\u202e\ufeff"'.encode(), '"e\u0301\u0000"'.encode(), b'"a\\nb"'),
)
FIELDS = (
    *(
        b"inputs",
        b"input_type",
        b"outputs",
        b"truncate",
        b"max_length",
        b"dimensions",
        b"encoding",
        b"adapter",
    ),
    *(b"collection", b"query", b"top_k", b"weights", b"candidates", b"filter", b"explain", b"search_options"),
    *(b"documents", b"top_n", b"dense_kind", b"token_codec", b"fields", b"source", b"encoder", b"on_error"),
    *(b"__proto__", b"$ref", b"", b"\\u0000", b"\\ud800", b"a" * 3000, "입력".encode()),
)
NAMES = (
    *(b"..", b"%2e%2e", b"..%2f..%2fetc", b"%00", b"%ff", b"a" * 300, b"A", b"%20", b"-", b"demo%20", b"con"),
    *(
        b"demo%2f",
        b"%F0%9F%8D%B5",
        b"%ed%a0%80",
        b"\\..\\..",
        b"demo;x=1",
        b"*",
        b"~",
        b"$(id)",
        b"'%20or%201",
    ),
    *(b"%0d%0aX-A:%20b", b".", b"demo", b"made", b"%", b"%zz", b"%252e", b"?", b"?filter=%7b", b"#x", b"_x"),
    *(b"a" * 64, b"a" * 65, b"0", b"x" * 5000, b"?limit=-1&limit=x", b"?after=%00", b"\xff\xfe"),
)
METHODS = (b"GET", b"HEAD", b"PUT", b"DELETE", b"POST", b"PATCH", b"OPTIONS", b"TRACE", b"BREW", b"get")
TYPES = (
    *(b"text/plain", b"application/xml", b"multipart/form-data", b"application/json; charset=utf-16", b""),
    *(b"a/b/c", b"application/x-www-form-urlencoded", b"application/octet-stream", b"\xff", b"application/"),
    *(b"application/json, text/plain", b"application/merge-patch+json", b"APPLICATION/JSON", b";;;"),
)
ODD_HEADERS: Headers = (
    *((b"Accept", value) for value in (b"application/x-safetensors", b"*/*;q=0", b',;="\\', b"a" * 4000)),
    *(
        (b"Accept", value)
        for value in (b"application/x-safetensors;q=9", b"text/html", b'x/y;p="' + b"," * 99)
    ),
    *((b"Accept-Encoding", value) for value in (b"gzip", b"zstd", b"gzip, identity;q=0", b"*", b"br;q=x")),
    *(
        (b"Content-Encoding", value)
        for value in (b"gzip", b"zstd", b"br", b"gzip, gzip", b"identity", b"\xff")
    ),
    *(
        (b"Authorization", value)
        for value in (b"Bearer", b"Basic eDp5", b"Bearer \xff", b"Bearer " + b"k" * 9999)
    ),
    *((b"X-Request-Id", value) for value in (b"a b", b"\xe2\x98\x95", b"x" * 200, b"fine-1", b"{{7*7}}")),
    *((b"Connection", value) for value in (b"Upgrade", b"keep-alive, x", b"close")),
    *((b"Expect", b"100-continue"), (b"Expect", b"tea"), (b"Upgrade", b"h2c"), (b"Range", b"bytes=0-0,-1")),
    *(
        (b"Host", b"other"),
        (b"X-Forwarded-For", b"::1"),
        (b"Cookie", b"a=" + b"b" * 9000),
        (b"TE", b"trailers"),
    ),
    *(
        (b"X-" + b"n" * 2000, b"v"),
        (b"Origin", b"null"),
        (b"If-None-Match", b"*"),
        (b"Content-Type", b"text/x"),
    ),
    *((b"X-HTTP-Method-Override", b"DELETE"), (b"Forwarded", b"for=_x"), (b"Content-Range", b"bytes 0-1/9")),
)
NO_HTTP = (
    *(b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is TLS", b"hello\r\n\r\n"),
    *(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00" * 500,
        b"\r\n" * 50 + b"x\r\n\r\n",
    ),
    *(b"GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"),
    *(
        b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: " + n + b"\r\n\r\n{}"
        for n in (b"-5", b"x", b"9" * 30)
    ),
    *(
        b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + t + b"\r\n\r\n{}"
        for t in (b"gzip", b"x, chunked")
    ),
    b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    b"GET http://[::bad/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 9000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n",
)
BOMB = gzip.compress(bytes(40 << 20))


class Hostile:
    """Makes requests without end, the same ones for the same seed and honest requests."""

    def __init__(self, seed: int, honest: Sequence[Request] = ()) -> None:
        """honest: requests to start from, besides some of our own."""
        self._random = random.Random(seed)
        self._honest = (HONEST, honest or HONEST)
        often = (self.valued, self.valued, self.fielded, self.headed, self.honest)
        seldom = (
            self.mutated,
            self.deep,
            self.recoded,
            self.compressed,
            self.pathlike,
            self.typed,
            self.chunked,
            self.no_http,
        )
        self._kinds: tuple[Callable[[], Request], ...] = (*often * 2, *seldom)

    def request(self) -> Request:
        """One request."""
        return self._random.choice(self._kinds)()

    def honest(self) -> Request:
        """One as it was given, as often one of our own."""
        return self._random.choice(self._random.choice(self._honest))

    def mutated(self) -> Request:
        """A body cut off, with bytes changed, doubled or thrown in."""
        request, draw = self._with_body(), self._random
        body = request.body
        at = draw.randrange(len(body))
        some = draw.randbytes(draw.randrange(1, 9))
        changed = draw.choice(
            [
                body[:at],
                body[:at] + some + body[at + 1 :],
                body[:at] + body,
                body[at:],
                body[:at] + some + body[at:],
            ]
        )
        return replace(request, body=changed)

    def fielded(self) -> Request:
        """A body with a field added or given twice."""
        request = self._with_body()
        field, value = self._random.choice(FIELDS), self._random.choice(VALUES)
        return replace(request, body=request.body.rstrip()[:-1] + b', "' + field + b'": ' + value + b"}")

    def valued(self) -> Request:
        """A body with one of its values, however deep, replaced."""
        request = self._with_body()
        try:
            tree = json.loads(request.body)
        except ValueError:
            return request
        place = "f4b1d"
        replaced = self._replaced(tree, place)
        body = json.dumps(replaced).encode()
        return replace(request, body=body.replace(b'"' + place.encode() + b'"', self._random.choice(VALUES)))

    def headed(self) -> Request:
        """A request with some odd headers."""
        request = self.honest()
        odd = tuple(self._random.choice(ODD_HEADERS) for _ in range(self._random.randrange(1, 4)))
        return replace(request, headers=(*request.headers, *odd))

    def deep(self) -> Request:
        """Nesting that would exhaust a recursive parser."""
        request, draw = self._with_body(), self._random
        opening, closing = draw.choice(
            [(b"[", b"]"), (b'{"and":[', b"]}"), (b'{"not":', b"}"), (b'{"a":', b"}")]
        )
        depth = draw.choice([5, 20, 200, 1000, 20_000])
        nest = opening * depth + draw.choice([b"", b"1" + closing * depth])
        return replace(request, body=request.body.rstrip()[:-1] + b', "filter": ' + nest + b"}")

    def typed(self) -> Request:
        """A body under another type."""
        return replace(self._with_body(), headers=((b"Content-Type", self._random.choice(TYPES)),))

    def recoded(self) -> Request:
        """A body in another character encoding."""
        request = self._with_body()
        coding = self._random.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7"])
        return replace(request, body=request.body.decode("utf-8", "replace").encode(coding))

    def compressed(self) -> Request:
        """A body in gzip: whole, cut off, damaged, twice, with something behind it, or a bomb."""
        request, draw = self._with_body(), self._random
        whole = gzip.compress(request.body, 1)
        at = draw.randrange(len(whole))
        damaged = whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1 :]
        bodies = [whole, whole[:at], damaged, gzip.compress(whole), whole + whole, request.body]
        body = BOMB if draw.random() < 0.02 else draw.choice(bodies)
        coding = (b"Content-Encoding", draw.choice([b"gzip", b"gzip", b"x-gzip", b"zstd", b"gzip, gzip"]))
        return replace(request, headers=(*request.headers, coding), body=body)

    def pathlike(self) -> Request:
        """A name that tries to be a path, or more than a name."""
        name, other = self._random.choice(NAMES), self._random.choice(NAMES)
        paths = (
            *(b"/collections/" + name, b"/collections/" + name + b"/jobs", b"/collections//" + name),
            *(b"/collections/" + name + b"/documents/" + other, b"/collections/demo/documents/" + name),
            *(b"/jobs/" + name, b"/" + name, b"//" + name, b"/embed/" + name, b"/docs/static/" + name, name),
        )
        method, target = self._random.choice(METHODS), self._random.choice(paths)
        if method == b"DELETE" and target == b"/collections/demo":  # later requests search it
            method = b"GET"
        whole = b"\xff" not in target and target.startswith(b"/") and b"\\" not in target
        return Request(method, target, (), whole=whole)

    def chunked(self) -> Request:
        """A body in chunks of odd sizes, with trailers, or with an end that never comes."""
        request, draw = self._with_body(), self._random
        chunks, rest = b"", request.body
        while rest:
            size = draw.choice([1, 2, 50, 1000])
            chunks += (
                f"{len(rest[:size]):x}".encode()
                + draw.choice([b"", b";a=b"])
                + b"\r\n"
                + rest[:size]
                + b"\r\n"
            )
            rest = rest[size:]
        ends = [b"0\r\n\r\n", b"0\r\nX-Trailer: x\r\n\r\n", b"000\r\n\r\n"]
        whole = draw.random() < 0.9
        end = draw.choice(ends if whole else [b"", b"0\r\n", b"ffffffffffffffffffff\r\n"])
        headers = (*request.headers, (b"Transfer-Encoding", b"chunked"))
        return replace(request, headers=headers, body=chunks + end, whole=whole)

    def no_http(self) -> Request:
        """What is hardly HTTP, or nearly."""
        draw = self._random
        wire = draw.choice(NO_HTTP) if draw.random() < 0.5 else self._broken_wire()
        return Request(b"", b"", whole=False, wire=wire)

    def _broken_wire(self) -> bytes:
        wire = self.honest().to_bytes()
        at = self._random.randrange(min(len(wire), 200))
        return wire[:at] + self._random.randbytes(3) + wire[at + 1 :]

    def _with_body(self) -> Request:
        while not (request := self.honest()).body:
            pass
        return request

    def _replaced(self, tree: Any, value: str) -> Any:
        """The tree with one of its parts, chosen at random, replaced."""
        inner = (
            list(tree.items())
            if isinstance(tree, dict)
            else list(enumerate(tree))
            if isinstance(tree, list)
            else []
        )
        if not inner or self._random.random() < 0.2:
            return value
        key, part = self._random.choice(inner)
        copy = dict(tree) if isinstance(tree, dict) else list(tree)
        copy[key] = self._replaced(part, value)
        return copy
