"""How many tokens a second can a GPU encode? Calculated from a model's shape and the rates of its data sheet.

usage: python -m benchmarks.roofline [--length TOKENS]

Prints the table of docs/performance.md. Nothing is run: `benchmarks/encode.py --device cuda` measures.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from benchmarks.encoding.shapes import SHAPES, Shape

VALUE_BYTES = 2  # bfloat16
# Of states read and written once by each step of a block: queries, keys and values 1 + 3, attention 3 + 1,
# its output 1 + 1, two sums with their layer norms 2 · (2 + 1), the two wide ones 1 + 1 beside their middle.
NARROW_VALUES = 18
ATTENTION_SHARE = 0.35  # of the bfloat16 rate, that FlashAttention-2 reaches on Hopper
AIM = 0.6


@dataclass(frozen=True)
class Gpu:
    """Rates of the data sheet, without sparsity. bytes: of memory."""

    name: str
    bfloat16_flops: float
    tf32_flops: float
    bytes_per_second: float
    host_bytes_per_second: float


GPUS = (
    Gpu("H100 SXM", 989.4e12, 494.7e12, 3.35e12, 64e9),
    Gpu("H200", 989.4e12, 494.7e12, 4.8e12, 64e9),
)


@dataclass(frozen=True)
class Work:
    """What one token takes: FLOP of the body's products, of attention and of the heads; bytes of memory, and
    to the host.
    """

    products: float
    attention: float
    heads: float
    memory_bytes: float
    host_bytes: float

    @staticmethod
    def of(shape: Shape, length: int) -> Work:
        """Of a text of so many tokens."""
        narrow, wide = shape.width, shape.intermediate
        return Work(
            products=shape.layers * 2 * (4 * narrow**2 + 2 * narrow * wide),
            attention=shape.layers * 4 * length * narrow,
            heads=2 * narrow * (shape.colbert + 1),
            memory_bytes=shape.layers * VALUE_BYTES * (NARROW_VALUES * narrow + 2 * wide),
            host_bytes=VALUE_BYTES * shape.colbert + 8 + 4 * narrow / length,
        )

    @property
    def flops(self) -> float:
        """All of them."""
        return self.products + self.attention + self.heads


def tokens_per_second(work: Work, gpu: Gpu) -> dict[str, float]:
    """The rate that each resource allows by itself."""
    seconds = (
        work.products / gpu.bfloat16_flops
        + work.attention / (ATTENTION_SHARE * gpu.bfloat16_flops)
        + work.heads / gpu.tf32_flops
    )
    return {
        "peak": gpu.bfloat16_flops / work.flops,
        "units": 1 / seconds,
        "memory": gpu.bytes_per_second / work.memory_bytes,
        "host": gpu.host_bytes_per_second / work.host_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--length", type=int, default=512)
    length = parser.parse_args().length
    print("| shape | MFLOP a token | attention | heads | KB of memory | bytes to the host |")
    print("|---|---|---|---|---|---|")
    for shape in SHAPES.values():
        work = Work.of(shape, length)
        print(
            f"| {shape.name} | {work.flops / 1e6:.1f} | {work.attention / work.flops:.1%} | "
            f"{work.heads / work.flops:.2%} | {work.memory_bytes / 1e3:.0f} | {work.host_bytes:.0f} |"
        )
    print(
        "\n| shape, GPU | all FLOP at the peak | by its units | by memory | to the host | 60% of the peak |"
    )
    print("|---|---|---|---|---|---|")
    for shape in SHAPES.values():
        for gpu in GPUS:
            rates = tokens_per_second(Work.of(shape, length), gpu)
            named = " | ".join(f"{rate / 1e6:.2f} M" for rate in rates.values())
            print(f"| {shape.name}, {gpu.name} | {named} | {AIM * rates['peak'] / 1e6:.2f} M |")


if __name__ == "__main__":
    main()
