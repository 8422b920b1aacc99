"""Runs benchmarks one after another, each in a process of its own, and names those that missed a bar.

usage: python -m benchmarks [--peer PYTHON] [NAME...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

# Left out are those of training, of several servers, of peers in environments of their own, and some more.
USUAL = (
    "search",
    "sparse",
    "dense",
    "late",
    "token_codecs",
    "segments",
    "scale",
    "filters",
    "quality",
    "encode",
    "build",
    "serve_load",
    "page",
    "live",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"by default {', '.join(USUAL)}")
    parser.add_argument("--peer", metavar="PYTHON", help="of an environment with FlagEmbedding")
    asked = parser.parse_args()
    names = asked.names or [*USUAL, *(["parity"] if asked.peer else [])]
    beside_peer = {"encode": ["--peer", f"flagembedding={asked.peer}"], "parity": [asked.peer]}
    missed = []
    for name in names:
        print(f"== {name}", flush=True)
        options = beside_peer.get(name, []) if asked.peer else []
        command = [sys.executable, "-m", f"benchmarks.{name}", *options]
        if subprocess.run(command, check=False).returncode:
            missed.append(name)
    if missed:
        sys.exit(f"failed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
