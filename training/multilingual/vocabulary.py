"""Extends an English WordPiece vocabulary by pieces of other languages; English text keeps its tokens.

Languages that write spaces between words get WordPiece entries. Words of Han, kana, Hangul and Thai become
added tokens, found anywhere in a text, longest first: WordPiece would keep one entry for a word at the
beginning of a run and another inside it, so that the lexical side would miss half of the matches.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import nlargest

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

UNSPACED = re.compile(
    r"[\u0e00-\u0e7f\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7a3\uf900-\ufaff]+"
)
# Longest run of letters that is one word: text without spaces of a script without added tokens.
LONGEST_WORD = 200
MOST_REPEATS = 1000


def normalized(text: str) -> str:
    """The text as the extended tokenizer reads it."""
    return unicodedata.normalize("NFKC", text).lower()


def unspaced_pieces(frequencies: Mapping[str, float], words: int, characters: int) -> list[str]:
    """The most frequent words, and the most frequent characters, of a language without spaces.

    frequencies: of words or of runs.
    """
    of_words: dict[str, float] = defaultdict(float)
    of_characters: dict[str, float] = defaultdict(float)
    for text, count in frequencies.items():
        for run in UNSPACED.findall(normalized(text)):
            of_words[run] += count
            for character in run:
                of_characters[character] += count
    found = nlargest(words, of_words, key=of_words.__getitem__)
    found += nlargest(characters, of_characters, key=of_characters.__getitem__)
    return list(dict.fromkeys(found))


def spaced_pieces(frequencies: Mapping[str, float], size: int) -> list[str]:
    """WordPiece entries, those inside a word with `##`, learned from a language's words."""
    words = {normalized(w): f for w, f in frequencies.items() if not UNSPACED.search(w)}
    least = min(words.values(), default=1.0)
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=size, limit_alphabet=200, show_progress=False)
    tokenizer.train_from_iterator(repeated(words, least), trainer)
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    return [piece for piece, _ in pieces]


def repeated(words: Mapping[str, float], least: float) -> Iterable[str]:
    """Each word as often as the root of its frequency says, so that rare words count too."""
    for word, frequency in words.items():
        yield " ".join([word] * min(MOST_REPEATS, max(1, round((frequency / least) ** 0.75))))


def extended(tokenizer_json: str, spaced: Iterable[str], unspaced: Iterable[str]) -> str:
    """The tokenizer.json of an uncased BERT with more pieces after its own, in the order given.

    Accents are kept, and Han characters are no longer set apart: the added tokens find them.
    """
    settings = json.loads(tokenizer_json)
    vocabulary: dict[str, int] = settings["model"]["vocab"]
    for piece in spaced:
        vocabulary.setdefault(piece, len(vocabulary))
    settings["model"]["max_input_chars_per_word"] = LONGEST_WORD
    settings["truncation"] = settings["padding"] = None
    settings["normalizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(settings))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace("\u0130", "i"),  # lower-cased, it would be two characters
            normalizers.NFKC(),
            normalizers.BertNormalizer(
                clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=True
            ),
        ]
    )
    tokenizer.add_tokens(list(unspaced))
    return str(tokenizer.to_str())


def without_english_changes(
    tokenizer_json: str, pieces: list[str], words: Mapping[str, float], least: float, rounds: int = 6
) -> list[str]:
    """The pieces but for those that cut frequent English words otherwise than the base vocabulary does.

    words: English words with their frequencies; least: what a piece may change, in all words together.
    """
    base = Tokenizer.from_str(tokenizer_json)
    base.no_padding()
    base.no_truncation()
    texts = [word for word in words if word.isascii()]
    expected = [encoding.ids for encoding in base.encode_batch_fast(texts, add_special_tokens=False)]
    for _ in range(rounds):
        tokenizer = Tokenizer.from_str(extended(tokenizer_json, pieces, []))
        changes: dict[str, float] = defaultdict(float)
        found = tokenizer.encode_batch(texts, add_special_tokens=False)
        for text, encoding, ids in zip(texts, found, expected, strict=True):
            if encoding.ids != ids:
                for piece in set(encoding.tokens) - {text}:
                    changes[piece] += words[text]
        harmful = {piece for piece, count in changes.items() if count > least}
        kept = [piece for piece in pieces if piece not in harmful]
        if len(kept) == len(pieces):
            break
        pieces = kept
    return pieces
