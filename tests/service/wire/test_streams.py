"""Each request of a stream gets its own answer, whatever comes before, behind or instead of it."""

import random

import pytest

from tercet.service.app import create_app
from tercet.service.serving import server_for
from tercet.service.settings.settings import Settings
from tercet.service.wire.connections import Connections
from tests.service.wire.streams import Answer, Stream, answers_to, draw_stream

STREAMS = 3_000
HEAD = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def connections() -> Connections:
    settings = Settings()
    state = server_for(create_app(settings), settings).server_state
    assert isinstance(state, Connections)
    return state


async def test_drawn_streams_get_what_the_model_says(connections: Connections) -> None:
    for seed in range(STREAMS):
        stream = draw_stream(random.Random(seed))
        assert await answers_to(stream, connections) == stream.answers, (seed, stream)
    assert not connections.connections
    assert not connections.tasks


@pytest.mark.parametrize("packet_bytes", [1, 1 << 20])
async def test_garbage_behind_whole_requests_takes_nothing_from_them(
    connections: Connections, packet_bytes: int
) -> None:
    content = HEAD + HEAD + b"BAD\r\n\r\n"
    packets = [content[start : start + packet_bytes] for start in range(0, len(content), packet_bytes)]
    answer = Answer(200, ("GET", "/a", ""), False)
    assert await answers_to(
        Stream(packets, False, [answer, answer, Answer(400, None, True)]), connections
    ) == [
        answer,
        answer,
        Answer(400, None, True),
    ]
