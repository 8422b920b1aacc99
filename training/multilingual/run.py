"""Makes a multilingual encoder from an English one: vocabulary, table, distillation.

Run: python -m training.multilingual.run SETTINGS.toml --data DATA --output FOLDER

DATA/parallel has the pairs that `training.multilingual.collect` gathered, DATA/frequencies the
words of each language. Each step's result stays in FOLDER/run, so that a run goes on where it was cut off.
`tercet export FOLDER --output CHECKPOINT --int8` then makes what is served.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from models.checkpoint import resolve_checkpoint
from training.multilingual.align import align_language
from training.multilingual.build_vocabulary import build_vocabulary
from training.multilingual.distil import distil
from training.multilingual.write import write_start
from training.settings.multilingual import read_multilingual_settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("settings", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    settings = read_multilingual_settings(asked.settings)
    torch.set_num_threads(asked.threads)
    torch.manual_seed(settings.seed)
    base = resolve_checkpoint(settings.base)
    run = asked.output / "run"
    (run / "counts").mkdir(parents=True, exist_ok=True)
    tokenizer = run / "tokenizer.json"
    if not tokenizer.is_file():
        build_vocabulary(settings, base, asked.data, tokenizer)
    for language in settings.alignment.languages:
        counts = run / "counts" / f"{language}.npz"
        if not counts.is_file():
            align_language(settings, language, base, tokenizer, asked.data, counts)
    start = run / "start"
    if not (start / "model.safetensors").is_file():
        write_start(base, tokenizer, run / "counts", start)
    distil(settings, base, start, asked.data, run, asked.output)


if __name__ == "__main__":
    main()
