"""Tercet's engines, for encode.py."""

from __future__ import annotations

import argparse

from timed import Asked, Run, main

from tercet.models.loader import load_encoder
from tercet.models.stream import encode_stream


def prepare(asked: Asked, options: argparse.Namespace) -> Run:
    """All texts as one stream, which builds encode by; what it gives is kept."""
    encoder = load_encoder(
        str(asked.checkpoint), options.engine, precision=options.precision, device=asked.device
    )
    return lambda texts: list(
        encode_stream(encoder, texts, outputs=asked.outputs, max_length=asked.max_length)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="onnx")
    parser.add_argument("--precision")
    main(prepare, parser)
