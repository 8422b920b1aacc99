"""A request that is alone is encoded where it is asked for; beside others it goes to the encoder's thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tercet.models.representations import OUTPUTS, Output, Representations, TokenBatch
from tercet.service.encoding import batcher
from tests.conftest import TinyEncoder

ENCODER_THREAD = "encoder_0"


class SureEncoder(TinyEncoder):
    """Called so as those that cannot hang; threads: where it worked."""

    def __init__(self) -> None:
        super().__init__()
        self._info = replace(self._info, engine="native")
        self.threads: list[str] = []

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | None] | None = None,
    ) -> Representations:
        self.threads.append(threading.current_thread().name)
        return super().encode_tokens(batch, outputs, adapters)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": "hot water", "input_type": "query"}),
        ("/search", {"collection": "demo", "query": "hot water"}),
    ],
)
@pytest.mark.parametrize("others", [0, 1])
def test_a_lone_request_takes_no_thread_of_the_encoder(
    make_app: Any,
    serve: Any,
    path: str,
    body: dict[str, Any],
    others: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batcher, "ALONE_SECONDS", 60)  # on a busy machine the first pass is not as short
    encoder = SureEncoder()
    app = make_app(encoder=encoder)
    with serve(app) as url, httpx.Client(base_url=url) as client:
        encoder.threads.clear()
        app.state.runtime.gate.in_work += others  # as if so many were in work, too
        assert client.post(path, json=body).status_code == 200
    (thread,) = encoder.threads
    assert (thread == ENCODER_THREAD) == bool(others)
