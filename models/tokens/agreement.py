"""Whether `tokenizer_config.json` says the same as `tokenizer.json`, of which only the latter is read here.

Where they differ, classes of transformers such as BertTokenizer go by the former, and so did who trained the
model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tercet.models.errors import CheckpointError

# Classes that read tokenizer.json alone, as we do.
OF_THE_FILE = ("PreTrainedTokenizerFast", "TokenizersBackend")


def require_agreement(content: bytes, config: Mapping[str, Any], path: Path, remedy: str) -> None:
    """content: of a `tokenizer.json`; config: of the other file, path. Raises CheckpointError that names the
    setting in which they differ.
    """
    compared = {"do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space"}
    compared = {name for name in compared if isinstance(config.get(name), bool)}
    if not compared or config.get("tokenizer_class") in OF_THE_FILE:
        return
    for name, value in _settings(json.loads(content)):
        if name in compared and config[name] != value:
            raise CheckpointError(
                f"{path}: {name} is {json.dumps(config[name])}, but tokenizer.json says {json.dumps(value)}; "
                f"{remedy}"
            )


def _settings(described: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """What a `tokenizer.json` says, under the names of the other file."""
    normalizer = described.get("normalizer") or {}
    if normalizer.get("type") == "BertNormalizer":
        lowercase, strips = bool(normalizer.get("lowercase")), normalizer.get("strip_accents")
        yield "do_lower_case", lowercase
        yield "strip_accents", lowercase if strips is None else bool(strips)
        yield "tokenize_chinese_chars", bool(normalizer.get("handle_chinese_chars"))
    splitting = described.get("pre_tokenizer") or {}
    if splitting.get("type") == "ByteLevel":
        yield "add_prefix_space", bool(splitting.get("add_prefix_space"))
