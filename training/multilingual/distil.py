"""Step 4: the new rows of the table learn to give texts the vectors of their English translations."""

from __future__ import annotations

import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from models.tokenizer import TOKENIZER_FILE
from models.torch_encoder import load_body
from training.multilingual.align import korean_words, packed, token_rows, unpadded
from training.multilingual.distillation import ExtendedTable, pooled, translation_loss
from training.multilingual.parallel import Translated, read_parallel
from training.settings.multilingual import MultilingualSettings

WEIGHTS = "model.safetensors"
TABLE = "embeddings.word_embeddings.weight"
PAIRS, TEACHER, PROGRESS = "pairs.npz", "teacher.npy", "progress.pt"
# Sentences say more than labels, and short ones fit into a batch.
ENGLISH_CHARACTERS = range(10, 221)
LONGEST_ENTRY = 40
# Translations that many languages have are taken first: their teacher vector is computed once.
SHARED_SOURCES = ("wesnoth", "help", "libreoffice", "catalogues")
LEAST_BATCH, MOST_BATCH = 48, 256
SAVE_SECONDS = 180
LOG_STEPS = 50
WARMUP_STEPS = 50
LAST_RATE = 0.05


def distil(
    settings: MultilingualSettings, base: Path, start: Path, data: Path, run: Path, output: Path
) -> None:
    """Trains from the checkpoint `start` and writes the checkpoint `output`; goes on where it was cut off."""
    body = load_body(start)
    body.requires_grad_(False)
    body.set_attn_implementation("eager")  # type: ignore[operator]  # faster than the fused kernel with AMX
    fixed = unpadded(base / TOKENIZER_FILE).get_vocab_size()
    if not (run / TEACHER).is_file():
        prepare(settings, base, start, data, run)
    stored = np.load(run / PAIRS)
    ids, offsets, english = stored["ids"], stored["offsets"], stored["english"]
    teacher = torch.from_numpy(np.load(run / TEACHER)).float()
    weights = load_file(start / WEIGHTS)
    table = ExtendedTable(weights[TABLE], fixed)
    chosen = settings.distillation
    optimizer = torch.optim.SparseAdam([table.new.weight], lr=chosen.learning_rate, betas=(0.9, 0.99))
    done = resume(run / PROGRESS, table, optimizer)
    generator = np.random.default_rng(settings.seed)
    lengths = np.diff(offsets)
    saved, mean = time.monotonic(), 0.0
    for step, rows in enumerate(batches(lengths, chosen.batch_tokens, chosen.steps, generator)):
        others = generator.integers(0, len(teacher), chosen.others)
        if step < done:
            continue  # the generator has to come to where it was
        for group in optimizer.param_groups:
            group["lr"] = chosen.learning_rate * rate_at(step, chosen.steps)
        tokens, mask = padded([ids[offsets[row] : offsets[row + 1]] for row in rows])
        with torch.autocast("cpu", torch.bfloat16):
            student = pooled(body, table(tokens), mask)
        loss = translation_loss(student, teacher[english[rows]], teacher[others], chosen.temperature)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()  # type: ignore[no-untyped-call]
        mean = loss.item() if step == done else 0.98 * mean + 0.02 * loss.item()
        if (step + 1) % LOG_STEPS == 0:
            print(f"step {step + 1} of {chosen.steps}: loss {mean:.4f}", flush=True)  # noqa: T201  # a program's output
        if time.monotonic() - saved > SAVE_SECONDS:
            save_progress(run / PROGRESS, table, optimizer, step + 1)
            saved = time.monotonic()
    weights[TABLE] = table.whole().contiguous()
    for path in start.iterdir():
        if path.name != WEIGHTS:
            shutil.copyfile(path, output / path.name)
    save_file(weights, output / WEIGHTS, metadata={"format": "pt"})
    (output / WEIGHTS).chmod(0o644)


def rate_at(step: int, steps: int) -> float:
    """The part of the learning rate that a step has: up linearly, then down to LAST_RATE."""
    return min(1.0, (step + 1) / WARMUP_STEPS) * (1 - (1 - LAST_RATE) * step / steps)


def resume(path: Path, table: ExtendedTable, optimizer: Any) -> int:
    """Loads what was saved, if anything was; returns how many steps are done."""
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    with torch.no_grad():
        table.new.weight.copy_(state["new"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["steps"])


def save_progress(path: Path, table: ExtendedTable, optimizer: Any, steps: int) -> None:
    """Replaces the saved state at once."""
    partial = path.with_suffix(".partial")
    state = {"new": table.new.weight.detach(), "optimizer": optimizer.state_dict(), "steps": steps}
    torch.save(state, partial)
    partial.replace(path)


def batches(
    lengths: npt.NDArray[np.int64], tokens: int, steps: int, generator: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Rows of `steps` batches of texts of about one length, each pair once an epoch."""
    done = 0
    while True:
        order = generator.permutation(len(lengths))
        order = order[np.argsort(lengths[order] + 2 * generator.random(len(order)), kind="stable")]
        starts = [0]
        while starts[-1] < len(order):
            size = tokens // max(1, int(lengths[order[starts[-1]]]))
            starts.append(starts[-1] + min(max(size, LEAST_BATCH), MOST_BATCH))
        for batch in generator.permutation(len(starts) - 1):
            if done == steps:
                return
            yield order[starts[batch] : starts[batch + 1]]
            done += 1


def padded(rows: list[Any]) -> tuple[Tensor, Tensor]:
    """Ids and mask, int64[B, L] each, of rows of ids."""
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = torch.as_tensor(tokens, dtype=torch.long)
        mask[row, : len(tokens)] = 1
    return ids, mask


def prepare(settings: MultilingualSettings, base: Path, start: Path, data: Path, run: Path) -> None:
    """Writes token ids of the pairs and the teacher's vectors of all distinct English texts."""
    numbers: dict[str, int] = {}
    pairs = [
        (pair.text, numbers.setdefault(pair.english, len(numbers)))
        for pair in distilled_pairs(settings, data)
    ]
    longest = settings.distillation.tokens
    extended, own = Tokenizer.from_file(str(start / TOKENIZER_FILE)), unpadded(base / TOKENIZER_FILE)
    rows = cut(token_rows(extended, [text for text, _ in pairs], special=True), longest)
    ids, offsets = packed(rows)
    np.savez(
        run / PAIRS, ids=ids, offsets=offsets, english=np.array([number for _, number in pairs], np.int32)
    )
    body: Any = load_body(base)
    english = cut(token_rows(own, list(numbers), special=True), longest)
    order = np.argsort([len(row) for row in english], kind="stable")
    vectors = np.zeros((len(english), body.config.hidden_size), np.float16)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for first in range(0, len(order), MOST_BATCH):
            part = order[first : first + MOST_BATCH]
            tokens, mask = padded([english[row] for row in part])
            vectors[part] = pooled(body, body.get_input_embeddings()(tokens), mask).numpy()
    np.save(run / TEACHER, vectors)


def cut(rows: list[list[int]], longest: int) -> list[list[int]]:
    """Rows of at most `longest` tokens, the last special token kept."""
    return [row if len(row) <= longest else [*row[: longest - 1], row[-1]] for row in rows]


def distilled_pairs(settings: MultilingualSettings, data: Path) -> Iterator[Translated]:
    """The pairs to learn from: of each source as many as the settings say."""
    chosen, generator = settings.distillation, Random(settings.seed)  # noqa: S311  # no secret
    texts: dict[str, list[Translated]] = {}
    words: dict[str, list[Translated]] = {}
    shared: Counter[str] = Counter()
    entries: Counter[str] = Counter()
    korean = korean_words(data)
    for language in chosen.languages:
        texts[language], words[language] = [], []
        for pair in read_parallel(data, language):
            if pair.kind == "text":
                if len(pair.english) in ENGLISH_CHARACTERS and " " in pair.english:
                    texts[language].append(pair)
                    shared[pair.english] += 1
            elif len(pair.english) <= LONGEST_ENTRY and (pair.source != "sino-korean" or pair.text in korean):
                words[language].append(pair)
                entries[pair.english] += 1
    for language in chosen.languages:
        by_source: dict[str, list[Translated]] = defaultdict(list)
        for pair in texts[language]:
            by_source[pair.source].append(pair)
        for source, found in by_source.items():
            if source in SHARED_SOURCES:
                found.sort(key=lambda pair: (-shared[pair.english], pair.english))
            else:
                generator.shuffle(found)
            yield from found[: round(chosen.share.get(language, 1.0) * chosen.limits.get(source, 0))]
        generator.shuffle(words[language])
        words[language].sort(key=lambda pair: -min(entries[pair.english], 4))
        yield from words[language][: chosen.words[language]]
