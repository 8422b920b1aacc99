"""Where an encoder runs: the names of devices that both engines take."""

from __future__ import annotations

import re

from tercet.models.errors import UnsupportedError


def choose_device(device: str, *, cuda: bool, remedy: str) -> tuple[str, int]:
    """cpu or cuda, and the number of the GPU, for auto, cpu, cuda or cuda:NUMBER.

    cuda: whether the engine can use one; `auto` takes it then. remedy: why it cannot, and what to do.
    Raises UnsupportedError for another name, and for cuda where there is none.
    """
    if device == "auto":
        return ("cuda" if cuda else "cpu"), 0
    known = re.fullmatch(r"cpu|cuda(?::(\d{1,3}))?", device, re.ASCII)
    if known is None:
        raise UnsupportedError(f"device {device!r} is not known; choose auto, cpu, cuda or cuda:NUMBER")
    if device != "cpu" and not cuda:
        raise UnsupportedError(f"device {device!r} was asked for, but {remedy}")
    return device.partition(":")[0], int(known[1] or 0)
