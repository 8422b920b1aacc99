"""A tiny tokenizer of BERT's kind, and the sizes of the bodies that go with it."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

BERT_WIDTH = 32
BERT_POSITIONS = 48
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
WORDS = ["wing", "air", "heat", "wave", "hello", "world", ",", ".", "!", "2", "별", "밤", "東", "京"]
PIECES = [*SPECIAL, *WORDS, *LETTERS, *[f"##{letter}" for letter in LETTERS]]


def word_piece_json() -> bytes:
    """A WordPiece tokenizer.json over letters, a few words and a few characters of other scripts.

    It asks for padding and truncation, as published ones do; ours must set both aside.
    """
    vocabulary = {piece: i for i, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(8)
    return tokenizer.to_str().encode()
