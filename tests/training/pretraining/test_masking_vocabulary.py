"""Which pieces continue a word, in WordPiece and in SentencePiece vocabularies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tercet.models.checkpoint import EncodingSettings, resolve_checkpoint
from tercet.models.errors import CheckpointError
from tercet.models.tokenizer import Tokenizer
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary, continuing_pieces

GOLDEN = Path(__file__).resolve().parents[2] / "models" / "golden" / "checkpoint"


def test_wordpiece_marks_what_continues_a_word() -> None:
    pieces = ["[CLS]", "un", "##believ", "##able", "##9", ",", "中", "##中", "##ๆ"]
    expected = [False, False, True, True, True, False, False, False, False]
    assert continuing_pieces(pieces, "##") == expected


def test_sentencepiece_marks_what_begins_a_word() -> None:
    pieces = ["<s>", "▁un", "believ", "able", "▁", ",", ".", "9", "▁안녕", "하세요", "▁नम", "्ते"]
    expected = [False, False, True, True, False, False, False, True, False, True, False, True]
    assert continuing_pieces(pieces, None) == expected


@pytest.mark.parametrize("piece", ["情報", "ひらがな", "カタカナ", "ภาษา", "ພາສາ", "ភាសា", "မြန်"])
def test_scripts_without_spaces_have_no_words_but_their_pieces(piece: str) -> None:
    assert continuing_pieces(["▁a", piece], None) == [False, False]


def test_a_vocabulary_of_whole_words_has_no_continuing_pieces() -> None:
    assert continuing_pieces(["[CLS]", "word", "other"], None) == [False, False, False]


def test_a_real_wordpiece_tokenizer() -> None:
    tokenizer = Tokenizer.load(resolve_checkpoint("minilm-m3"), EncodingSettings())
    vocabulary = MaskingVocabulary.of(tokenizer)
    ids = tokenizer.tokenize(["unbelievably fast, 中文"]).token_ids
    pieces = tokenizer.token_strings(ids)
    assert "##bly" in pieces
    continues = vocabulary.continues[ids.astype(np.int64)].tolist()
    assert continues == [piece.startswith("##") for piece in pieces]
    assert tokenizer.token_strings(np.array([vocabulary.mask_id], np.int32)) == ["[MASK]"]
    assert set(vocabulary.special.nonzero().squeeze(1).tolist()) == set(tokenizer.special_ids)


def test_a_real_unigram_tokenizer() -> None:
    tokenizer = Tokenizer.load(GOLDEN, EncodingSettings())
    vocabulary = MaskingVocabulary.of(tokenizer)
    pieces = tokenizer.token_strings(np.arange(tokenizer.vocabulary_size, dtype=np.int32))
    assert pieces[vocabulary.mask_id] == "<mask>"
    by_piece = dict(zip(pieces, vocabulary.continues.tolist(), strict=True))
    assert by_piece["e"]
    assert by_piece["ä"]
    assert not any(by_piece[piece] for piece in by_piece if not piece[0].isalnum())
    words = [piece for piece in pieces if piece.startswith("▁")]
    assert words
    assert not any(by_piece[piece] for piece in words)


def test_a_vocabulary_without_a_mask_token_is_named() -> None:
    from tokenizers import Tokenizer as Vocabulary
    from tokenizers import models, processors

    library = Vocabulary(models.WordLevel({"[CLS]": 0, "[SEP]": 1, "a": 2}, unk_token="a"))
    library.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    with pytest.raises(CheckpointError, match=r"\[MASK\]"):
        MaskingVocabulary.of(Tokenizer(library.to_str().encode(), EncodingSettings()))
