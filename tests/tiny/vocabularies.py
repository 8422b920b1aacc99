"""Tiny tokenizers of the kinds that encoders come with, over words, letters and bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

WORDS = ["tea", "water", "hot", "brew", "train", "rail", "the", "station", "green", "leaf", "a"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789"]
SPACE = "▁"  # what SentencePiece writes for a space


def word_pieces(special: Sequence[str], first: str, last: str, unknown: str) -> Tokenizer:
    """As BERT's: words, then letters. special: the special tokens, in order of their ids from 0."""
    pieces = [*special, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    tokenizer = Tokenizer(models.WordPiece(_numbered(pieces), unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _framed(tokenizer, special, first, last)


def unigrams(special: Sequence[str], first: str, last: str, unknown: str) -> Tokenizer:
    """As SentencePiece's of XLM-RoBERTa and DeBERTa v3."""
    pieces = [*special, *(SPACE + word for word in WORDS), SPACE, *LETTERS]
    scores = [(piece, -float(place)) for piece, place in _numbered(pieces).items()]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=special.index(unknown), byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return _framed(tokenizer, special, first, last)


def byte_pairs(special: Sequence[str], first: str, last: str, unknown: str) -> Tokenizer:
    """As those of RoBERTa, ModernBERT and Qwen: bytes, and the pairs that make up one word."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "e"), ("te", "a"), ("Ġ", "tea")]
    pieces = [*special, *alphabet, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE(_numbered(pieces), merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _framed(tokenizer, special, first, last)


def byte_fallback(special: Sequence[str], first: str, last: str, unknown: str) -> Tokenizer:
    """As Gemma's: pairs of characters, spaces among them, and bytes for what it does not know."""
    merges = [("t", "e"), ("te", "a"), (SPACE, "tea")]
    pieces = [
        *special,
        *(f"<0x{byte:02X}>" for byte in range(256)),
        SPACE,
        *LETTERS,
        *("".join(pair) for pair in merges),
    ]
    tokenizer = Tokenizer(
        models.BPE(_numbered(pieces), merges, unk_token=unknown, byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    return _framed(tokenizer, special, first, last)


Kind = Callable[[Sequence[str], str, str, str], Tokenizer]


def _numbered(pieces: Sequence[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def _framed(tokenizer: Tokenizer, special: Sequence[str], first: str, last: str) -> Tokenizer:
    """With the special tokens around texts; first or last is empty where there is none."""
    frame = [name for name in (first, "$A", last) if name]
    ends = [(name, special.index(name)) for name in (first, last) if name]
    tokenizer.post_processor = processors.TemplateProcessing(single=" ".join(frame), special_tokens=ends)
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    return tokenizer
