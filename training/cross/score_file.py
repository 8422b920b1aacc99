"""Writes a training file again, with the scores that a cross-encoder gives its passages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tercet.models.cross_encoder import CrossEncoder
from tercet.models.files import force_open
from tercet.models.representations import TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pairs import ANY_LINE, numbered_lines, parse_pair
from tercet.training.files import whole_lines
from tercet.training.settings.data import QueryData, ScoreSource

LINES_AT_ONCE = 64
"""Lines whose texts are in memory together."""


def scored_path(folder: Path, source: ScoreSource) -> Path:
    """Where the scored lines of a source go."""
    return folder / Path(source.path.removesuffix(".gz")).name


def write_scores(
    encoder: CrossEncoder,
    tokenizer: Tokenizer,
    source: ScoreSource,
    settings: QueryData,
    data: Path,
    folder: Path,
    sub_batch_tokens: int,
) -> Path:
    """Writes every line of a source with `pos_scores` and `neg_scores`; goes on where it was killed.

    Lines lie in a file of their own until all are there, and what it holds is not scored again. Raises
    TrainingDataError for a bad line, naming it.
    """
    path = scored_path(folder, source)
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    done = whole_lines(unfinished)
    lines = islice(numbered_lines(data / source.path, source.lines), done, None)
    with unfinished.open("a", encoding="utf-8") as file:
        while block := list(islice(lines, LINES_AT_ONCE)):
            file.writelines(scored_lines(encoder, tokenizer, block, settings, sub_batch_tokens))
            file.flush()
        force_open(file.fileno())
    unfinished.replace(path)
    return path


def scored_lines(
    encoder: CrossEncoder,
    tokenizer: Tokenizer,
    lines: Sequence[tuple[str, str]],
    settings: QueryData,
    sub_batch_tokens: int,
) -> Iterator[str]:
    """Lines with the scores of their passages; all go through the model together."""
    pairs = [parse_pair(line, where, ANY_LINE) for line, where in lines]
    texts = []
    for pair in pairs:
        asked = tokenizer.tokenize([pair.query], "query", max_length=settings.query_tokens)
        passages = [*pair.positives, *pair.negatives]
        cut = tokenizer.tokenize(passages, "document", max_length=settings.passage_tokens)
        texts.append(encoder.pairs(asked.token_ids, cut))
    scores = iter(encoder.scores(TokenBatch.concatenate(texts), sub_batch_tokens).tolist())
    for (line, _), pair in zip(lines, pairs, strict=True):
        value = json.loads(line)
        value["pos_scores"] = list(islice(scores, len(pair.positives)))
        value["neg_scores"] = list(islice(scores, len(pair.negatives)))
        yield json.dumps(value, ensure_ascii=False) + "\n"
