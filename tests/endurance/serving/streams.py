"""Many drawn streams of pipelined and broken requests, each held against a model of what it must get."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tercet.service.app import create_app
from tercet.service.serving import server_for
from tercet.service.settings.settings import Settings
from tercet.service.wire.connections import Connections
from tests.service.wire.streams import answers_to, draw_stream

STREAMS, QUICK_STREAMS = 200_000, 20_000


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures, and the streams that got something else."""
    settings = Settings()
    connections = server_for(create_app(settings), settings).server_state
    assert isinstance(connections, Connections)
    count = QUICK_STREAMS if quick else STREAMS
    requests, missed = asyncio.run(_try(connections, count))
    return {"streams": count, "answers": requests}, missed


async def _try(connections: Connections, count: int) -> tuple[int, list[str]]:
    answers, missed = 0, list[str]()
    for seed in range(count):
        stream = draw_stream(random.Random(seed))
        if await answers_to(stream, connections) != stream.answers:
            missed.append(f"seed {seed}: {stream}")
        answers += len(stream.answers)
    return answers, missed
