"""What masking must know of a vocabulary: the mask token, special ids, pieces that continue a word."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tercet.models.errors import CheckpointError
from tercet.models.representations import Bool
from tercet.models.tokenizer import Tokenizer
from tercet.training.transfer import on_device

MASK_NAMES = ("[MASK]", "<mask>")
# SentencePiece writes the space before a word into the word's first piece.
SPACE = "▁"
# Scripts that put no spaces between words, by the first words of their characters' Unicode names: there the
# tokenizer's pieces are the words, and a whole sentence would otherwise count as one.
UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "BOPOMOFO",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)


@dataclass(frozen=True, slots=True)
class MaskingVocabulary:
    """V token ids as masking sees them.

    mask_id: id of the mask token; is_special: bool[V] on the host, ids that are never predicted nor drawn at
    random, and special, the same on the device; continues: bool[V], pieces that belong to the word of the
    piece before them; ordinary: int64, the ids that are not special, ascending.
    """

    mask_id: int
    is_special: Bool
    special: Tensor
    continues: Tensor
    ordinary: Tensor

    @staticmethod
    def of_arrays(
        mask_id: int, special: Bool, continues: Bool, device: torch.device | str = "cpu"
    ) -> MaskingVocabulary:
        """special, continues: bool[V], of which special ids continue nothing."""
        arrays = special, continues & ~special, np.flatnonzero(~special)
        return MaskingVocabulary(mask_id, special, *(on_device(array, device) for array in arrays))

    @staticmethod
    def of(tokenizer: Tokenizer, device: torch.device | str = "cpu") -> MaskingVocabulary:
        """Derived from the pieces of a tokenizer: WordPiece, or SentencePiece's Unigram and BPE.

        In any other vocabulary each token is a word of its own.
        Raises CheckpointError where there is no mask token.
        """
        pieces = tokenizer.token_strings(np.arange(tokenizer.vocabulary_size, dtype=np.int32))
        mask_id = next((pieces.index(name) for name in MASK_NAMES if name in pieces), None)
        if mask_id is None:
            raise CheckpointError(
                f"the tokenizer has neither of {MASK_NAMES}, which pre-training puts in the place of tokens; "
                "choose a checkpoint that was pre-trained with masks"
            )
        prefix = json.loads(tokenizer.to_bytes())["model"].get("continuing_subword_prefix")
        special = np.array([not piece for piece in pieces])
        special[list(tokenizer.special_ids)] = True
        continues = np.array(continuing_pieces(pieces, prefix))
        return MaskingVocabulary.of_arrays(mask_id, special, continues, device)


def continuing_pieces(pieces: Sequence[str], prefix: str | None) -> list[bool]:
    """For each piece whether it continues a word.

    prefix: what marks such pieces, `##` in WordPiece; without it, pieces that lack SentencePiece's mark of a
    space continue a word, provided that any piece has it.
    """
    if prefix:
        return [piece.startswith(prefix) and _joins_a_word(piece.removeprefix(prefix)) for piece in pieces]
    if not any(piece.startswith(SPACE) for piece in pieces):
        return [False] * len(pieces)
    return [not piece.startswith(SPACE) and _joins_a_word(piece) for piece in pieces]


def _joins_a_word(text: str) -> bool:
    """Whether a text starts with a letter, mark or digit of a script with spaces between words."""
    if not text or unicodedata.category(text[0])[0] not in "LMN":
        return False
    return not unicodedata.name(text[0], "").startswith(UNSPACED)
