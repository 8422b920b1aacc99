"""A message arrives as it was sent, or is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tercet.service.shard.messages import Message, message


def test_a_message_arrives_and_any_bit_that_is_another_is_noticed() -> None:
    """Also one of a score, which would look like any other."""
    scores = np.array([0.5, 0.25], np.float64)
    sent = message({"search": "a"}, {"scores": scores})
    arrived = Message.read(sent)
    assert arrived.values == {"search": "a"}
    assert arrived.array("scores", np.float64, 2).tolist() == [0.5, 0.25]
    for place in range(len(sent)):
        for bit in range(8):
            damaged = bytearray(sent)
            damaged[place] ^= 1 << bit
            with pytest.raises(ValueError, match="checksum"):
                Message.read(bytes(damaged))


def test_what_was_cut_short_is_noticed() -> None:
    sent = message({}, {"scores": np.zeros(3)})
    for size in range(len(sent)):
        with pytest.raises(ValueError, match="checksum"):
            Message.read(sent[:size])
