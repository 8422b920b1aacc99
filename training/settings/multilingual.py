"""Settings of `training.multilingual.run`, how an English checkpoint becomes a multilingual one."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import Field, ValidationError

from training.errors import ConfigError
from training.settings.table import AtLeast0, AtLeast1, Factor, Many, Positive, Table


class Unspaced(Table):
    """How many of the most frequent words and characters of a language become pieces."""

    words: AtLeast0
    characters: AtLeast0


class Vocabulary(Table):
    """unspaced: by language; spaced: WordPiece entries to learn, by language; english_texts: files of pairs
    whose positives tell, with the list of English words, which pieces would change English; change_limit:
    how often a piece may change it; frequent_words: how many words of a list are read."""

    unspaced: dict[str, Unspaced]
    spaced: dict[str, AtLeast1]
    english_texts: Many[str]
    change_limit: Factor = 8.0
    frequent_words: AtLeast1 = 120_000


class Alignment(Table):
    """trusted: sources of which all pairs are read; texts, words: pairs of other sources and entries of
    dictionaries, at random, of each language at most; tokens: longest text."""

    languages: Many[str]
    trusted: Many[str]
    texts: AtLeast0 = 22_000
    words: AtLeast0 = 170_000
    tokens: AtLeast1 = 70
    iterations: AtLeast1 = 5


class Distillation(Table):
    """limits: pairs of each source, at most; share: what part of them a language takes, by default all;
    words: entries of dictionaries, by language; steps and learning rate of SparseAdam; others: English
    vectors to tell apart beside those of the batch."""

    languages: Many[str]
    limits: dict[str, AtLeast0]
    share: dict[str, Positive] = Field(default_factory=dict)
    words: dict[str, AtLeast0]
    tokens: AtLeast1 = 64
    batch_tokens: AtLeast1 = 4096
    steps: AtLeast1
    learning_rate: Positive
    temperature: Positive = 0.05
    others: AtLeast0 = 2048


class MultilingualSettings(Table):
    """A whole run. base: the English checkpoint, a name or a folder."""

    base: str
    seed: AtLeast0 = 1
    vocabulary: Vocabulary
    alignment: Alignment
    distillation: Distillation


def read_multilingual_settings(path: Path) -> MultilingualSettings:
    """The settings of a TOML file. Raises ConfigError naming the file and each setting at fault."""
    try:
        return MultilingualSettings.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise ConfigError(f"{path}: {'; '.join(faults)}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as TOML: {error}") from error
