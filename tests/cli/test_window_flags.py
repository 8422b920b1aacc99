"""Flags that ask for windows: what an encoder does not take is told by the flag's name."""

import pytest

from tercet.cli.options import window_flags
from tercet.models.errors import UnsupportedWindowError


def test_windows_that_an_encoder_does_not_take_name_the_flag() -> None:
    with (
        pytest.raises(
            UnsupportedWindowError, match=r"^--window-tokens is 4096; this encoder takes at most 512$"
        ),
        window_flags(),
    ):
        raise UnsupportedWindowError("tokens", "4096; this encoder takes at most 512")
