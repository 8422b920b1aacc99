"""The tables of an exported graph, and whether they have a row for all that texts may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.models.checkpoint import CONFIG_FILE, SETTINGS_FILE, position_offset
from tercet.models.errors import CheckpointError
from tercet.models.graphs.onnx_file import OnnxFile, read_onnx
from tercet.models.tokenizer import Tokenizer

EMBEDDINGS = "body.embeddings."
WORDS, POSITIONS = f"{EMBEDDINGS}word_embeddings.weight", f"{EMBEDDINGS}position_embeddings.weight"
FORMS = ("", "/int8", "/int4")  # of one table, by what stands behind its name


@dataclass(frozen=True, slots=True)
class TextRows:
    """What texts may ask of tables. tokens: ids lie below it; length: of a text, in tokens; offset, pad_id:
    of the positions that the configuration and the tokenizer name.
    """

    tokens: int
    length: int
    offset: int
    pad_id: int

    @staticmethod
    def of(config: Mapping[str, Any], tokenizer: Tokenizer) -> TextRows:
        """Of the texts that a tokenizer makes for a model of this configuration."""
        return TextRows(
            tokenizer.vocabulary_size,
            tokenizer.settings.max_length,
            position_offset(config),
            tokenizer.pad_id,
        )

    def require(self, path: Path) -> None:
        """Raises CheckpointError where a table of a graph has fewer rows: none would be read beyond its end.
        Tables of other names than those of BERT's family are left to the engine.
        """
        file = read_onnx(path)
        words, positions = _rows(file, WORDS), _rows(file, POSITIONS)
        if words is not None and words < self.tokens:
            raise CheckpointError(
                f"{path}: {WORDS} has {words} rows, but the tokenizer has {self.tokens} tokens; take both "
                "files of one model"
            )
        counts_pads = any(node.kind == "CumSum" for node in file.nodes)
        before = max(self.offset, self.pad_id + 1 if counts_pads else 0)
        if positions is not None and positions < before + self.length:
            raise CheckpointError(
                f"{path}: {POSITIONS} has {positions} rows, which is room for texts of "
                f"{max(0, positions - before)} tokens, but max_length is {self.length}; give "
                f"{SETTINGS_FILE} a max_length that is no greater, or take the {CONFIG_FILE} of this model"
            )


def _rows(file: OnnxFile, name: str) -> int | None:
    table = next((file.weights[name + form] for form in FORMS if name + form in file.weights), None)
    return None if table is None else table.shape[0] if table.ndim else 0
