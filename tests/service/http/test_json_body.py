"""Large JSON bodies: counted, cut, and the same as in one piece."""

import json
import random
from typing import Any

import httpx
import orjson
import pytest

from tercet.service.exceptions import RequestTooLargeError
from tercet.service.http import json_body
from tercet.service.http.json_body import LARGE_BYTES, MAX_KEYS, MAX_VALUES, parse, scan

SEED = 20261122
BODIES = 4000
LEAVES: list[Any] = [1, 2.5, None, True, "", 'a"b', "\\", '\\\\"', "[,]", "한\u2028{}:", -0.0]


def random_value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.random()
    if depth > 3 or kind < 0.4:
        return chance.choice(LEAVES)
    if kind < 0.7:
        return [random_value(chance, depth + 1) for _ in range(chance.randrange(5))]
    keys = [chance.choice(["a", '"', "\\", ":"]) + str(number) for number in range(chance.randrange(4))]
    return {key: random_value(chance, depth + 1) for key in keys}


def damaged(chance: random.Random, body: bytes) -> bytes:
    """The body with one byte changed, lost or added."""
    at = chance.randrange(len(body))
    piece = chance.choice([b"", b",", b"]", b"[", b'"', b"\\", b"}"])
    return body[:at] + piece + body[at + chance.randrange(2) :]


@pytest.mark.slow
def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "PIECE_BYTES", 7)
    monkeypatch.setattr(json_body, "SCANNED_BYTES", 5)
    chance = random.Random(SEED)
    broken = 0
    for _ in range(BODIES):
        body = json.dumps(random_value(chance), ensure_ascii=chance.random() < 0.5).encode()
        if chance.random() < 0.5:
            body = damaged(chance, body)
        try:
            expected = orjson.loads(body)
        except orjson.JSONDecodeError:
            broken += 1
            with pytest.raises(orjson.JSONDecodeError):
                parse(body, scan(body))
        else:
            assert parse(body, scan(body)) == expected, body
    assert BODIES / 10 < broken < BODIES / 2


def test_a_long_list_is_built_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    def watched(piece: bytes) -> Any:
        built.append(len(piece))
        return orjson.loads(piece)

    monkeypatch.setattr(json_body, "loads", watched)
    body = orjson.dumps({"other": [1, 2], "inputs": ["x, y" * 1000] * 1000, "last": {"a": [1]}})
    assert parse(body, scan(body)) == orjson.loads(body)
    assert len(built) > 10
    assert max(built) < 2 * json_body.PIECE_BYTES


@pytest.mark.parametrize(
    "body",
    [
        b'{"inputs": [' + b'"",' * MAX_VALUES + b'""]}',
        b'{"query": {"dense": [' + b"0," * MAX_VALUES + b"0]}}",
        b'{"filter": ' + b"[" * (MAX_VALUES + 1),
        b"{" + b",".join(b'"%d":0' % number for number in range(MAX_KEYS + 1)) + b"}",
    ],
)
def test_what_would_take_long_to_build_is_refused(body: bytes) -> None:
    with pytest.raises(RequestTooLargeError, match="base64"):
        scan(body)


def test_marks_within_strings_do_not_count() -> None:
    body = orjson.dumps({"inputs": ['[{"a": 1, \\"' * MAX_VALUES]})
    assert len(scan(body).marks) == 5


async def test_large_bodies_over_http(client: httpx.AsyncClient) -> None:
    def post(content: bytes) -> Any:
        return client.post("/embed", content=content, headers={"Content-Type": "application/json"})

    texts = ["tea"] * 50 + ["x " * (LARGE_BYTES // 2)]
    answer = await post(orjson.dumps({"inputs": texts, "outputs": ["sparse"]}))
    assert answer.status_code == 200
    assert len(answer.json()["embeddings"]) == 51
    refused = await post(b'{"inputs": [' + b'"",' * MAX_VALUES + b'""]}')
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")
    broken = await post(orjson.dumps({"inputs": texts})[:-1])
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "invalid_json")
    wrong = await post(orjson.dumps({"inputs": [*texts, 1]}))
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (422, "inputs.51")
