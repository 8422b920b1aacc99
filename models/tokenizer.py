"""Text to token ids, with the `tokenizers` library; truncation is reported per text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Vocabulary

from models.checkpoint import EncodingSettings
from models.errors import CheckpointError, TextTooLongError, UnsupportedError
from models.representations import Bool, InputType, Int32, Int64, TokenBatch, offsets_of

TOKENIZER_FILE = "tokenizer.json"
SPECIAL_NAMES = frozenset(
    {"[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "[BOS]", "[EOS]"}
    | {"<s>", "</s>", "<pad>", "<unk>", "<mask>", "<cls>", "<sep>", "<bos>", "<eos>"}
)
PAD_NAMES = ("[PAD]", "<pad>")
# A text is first read up to this many characters for each token allowed, and further only if that gives too
# few tokens; so the cost of a very long text depends on the length limit, not on the text.
CHARACTERS_PER_TOKEN = 16
# Tokens near the cut of a prefix may differ from those of the whole text; this many are not relied on.
CUT_MARGIN_TOKENS = 128
# The library holds some 200 bytes for each token of the texts that it is given together.
TEXTS_AT_A_TIME = 32


@dataclass(frozen=True, slots=True)
class TokenSpans:
    """The L tokens of a text, int32[L], and where they lie in it: first characters and ends, int64[L].

    begins_word: bool[L].
    """

    token_ids: Int32
    starts: Int64
    ends: Int64
    begins_word: Bool

    def __len__(self) -> int:
        return len(self.starts)


class Tokenizer:
    """A checkpoint's vocabulary with its special tokens, instructions and length limit.

    Safe to share between threads: nothing is changed after construction (padding and truncation,
    which the library keeps as state, are done here on arrays).
    """

    def __init__(self, tokenizer_json: bytes, settings: EncodingSettings) -> None:
        try:
            vocabulary = Vocabulary.from_buffer(tokenizer_json)
        except ValueError as error:
            raise CheckpointError(f"{TOKENIZER_FILE} is damaged or not understood: {error}") from error
        vocabulary.no_padding()
        vocabulary.no_truncation()
        self.settings = settings
        self._json = tokenizer_json
        self._vocabulary = vocabulary
        self._prefix, self._suffix = _special_frame(vocabulary)
        self.vocabulary_size = 1 + max(vocabulary.get_vocab(with_added_tokens=True).values())
        self.special_ids = _special_ids(vocabulary, tokenizer_json, [*self._prefix, *self._suffix])
        self.pad_id = next((i for i in map(vocabulary.token_to_id, PAD_NAMES) if i is not None), 0)

    @staticmethod
    def load(folder: Path, settings: EncodingSettings) -> Tokenizer:
        """The tokenizer of a checkpoint folder. Raises CheckpointError where tokenizer.json is missing."""
        path = folder / TOKENIZER_FILE
        if not path.is_file():
            raise CheckpointError(
                f"{path} is missing; where the folder has only vocab.txt or sentencepiece.bpe.model, make it "
                "with transformers, F being the folder: AutoTokenizer.from_pretrained(F).save_pretrained(F)"
            )
        return Tokenizer(path.read_bytes(), settings)

    @staticmethod
    def from_bytes(tokenizer_json: bytes, settings: EncodingSettings) -> Tokenizer:
        """A tokenizer from the bytes of a tokenizer.json, such as another process serves."""
        return Tokenizer(tokenizer_json, settings)

    def to_bytes(self) -> bytes:
        """The tokenizer.json this was made from, unchanged."""
        return self._json

    @property
    def frame(self) -> tuple[Int32, Int32]:
        """Ids of the special tokens before and after a text."""
        return self._prefix, self._suffix

    def instruction(self, input_type: InputType) -> str:
        """What stands before a text of this type."""
        settings = self.settings
        return settings.query_instruction if input_type == "query" else settings.document_instruction

    @property
    def digest(self) -> str:
        """sha256 of the tokenizer.json, hexadecimal."""
        return hashlib.sha256(self._json).hexdigest()

    def token_strings(self, token_ids: npt.NDArray[np.int32]) -> list[str]:
        """The vocabulary's piece of each id; an id outside the vocabulary gives an empty string."""
        return [self._vocabulary.id_to_token(i) or "" for i in token_ids.tolist()]

    def tokenize(
        self,
        texts: Sequence[str],
        input_type: InputType = "document",
        *,
        max_length: int | None = None,
        truncate: bool = True,
    ) -> TokenBatch:
        """Token ids of texts, each within its special tokens and after the instruction of its type.

        A text of more than `max_length` tokens (special tokens included; by default the checkpoint's
        limit) keeps its first ones and its last special token, and is marked truncated.
        Raises TextTooLongError instead where `truncate` is false, and UnsupportedError for a
        `max_length` outside what the checkpoint allows.
        """
        limit = self.length_limit(max_length)
        room = self._room(limit)
        instruction = self.instruction(input_type)
        contents = self._contents([valid_text(instruction + text) for text in texts], room)
        truncated: Bool = np.fromiter((len(c) > room for c in contents), np.bool_, len(contents))
        if not truncate and truncated.any():
            row = int(truncated.argmax())
            raise TextTooLongError(
                f"text {row} has more than {limit} tokens, the limit; shorten it, or allow truncation"
            )
        rows = [self._framed(content[:room]) for content in contents]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        token_ids = np.concatenate(rows) if rows else np.zeros(0, np.int32)
        return TokenBatch(token_ids, offsets_of(lengths), truncated)

    def tokenize_whole(self, texts: Sequence[str]) -> TokenBatch:
        """Token ids of texts as they are, however long: no instruction, no special tokens, nothing cut."""
        room = max(map(len, texts), default=0)  # for any text: a token has a character at least
        contents = self._contents([valid_text(text) for text in texts], room)
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        token_ids = np.concatenate(contents) if contents else np.zeros(0, np.int32)
        return TokenBatch(token_ids, offsets_of(lengths), np.zeros(len(contents), np.bool_))

    def spans(self, text: str) -> TokenSpans:
        """Where the tokens of a text lie, without special tokens and instruction."""
        # As a batch of one: for a single text the interpreter's lock is held until all of it is done.
        (encoding,) = self._vocabulary.encode_batch([valid_text(text)], add_special_tokens=False)
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        words = np.array([-1 if word is None else word for word in encoding.word_ids], np.int64)
        begins_word = np.ones(len(words), np.bool_)
        begins_word[1:] = words[1:] != words[:-1]
        return TokenSpans(np.array(encoding.ids, np.int32), offsets[:, 0], offsets[:, 1], begins_word)

    def text_of(self, token_ids: Sequence[int]) -> str:
        """The text of tokens, without special ones and those that the vocabulary does not have."""
        known = [one for one in token_ids if one < self.vocabulary_size]
        text: str
        (text,) = self._vocabulary.decode_batch([known])  # as `spans`, a batch of one
        return text

    def tail(self, text: str, input_type: InputType = "document") -> str:
        """The last whole words of a text that fit into the length limit; the text where it does."""
        instruction = self._vocabulary.encode(self.instruction(input_type), add_special_tokens=False)
        room = self._room(self.settings.max_length) - len(instruction)
        spans = self.spans(text)
        if len(spans) <= room:
            return text
        first = len(spans) - room
        begins = np.flatnonzero(spans.begins_word[first:])
        return text[spans.starts[first + (int(begins[0]) if len(begins) else 0)] :]

    def document_room(self, limit: int) -> int:
        """Tokens of a document's text that fit into `limit` beside special tokens and instruction."""
        instruction = self._vocabulary.encode(self.settings.document_instruction, add_special_tokens=False)
        return self._room(limit) - len(instruction)

    def length_limit(self, max_length: int | None) -> int:
        """Tokens of a text at most. Raises UnsupportedError for a `max_length` that the checkpoint does not
        allow.
        """
        most = self.settings.max_length
        least = len(self._prefix) + len(self._suffix) + 1
        limit = most if max_length is None else max_length
        if not least <= limit <= most:
            raise UnsupportedError(f"max_length is {limit}; this encoder takes {least} to {most} tokens")
        return limit

    def _room(self, limit: int) -> int:
        """Tokens of content that fit into `limit` beside the special tokens."""
        room = limit - len(self._prefix) - len(self._suffix)
        every = self.settings.mcls_every
        if every is None:
            return room
        # Content and inserted CLS fill positions 1 … room, and every `every`-th position is a CLS.
        return room - room // every

    def _contents(self, texts: Sequence[str], room: int) -> list[Int32]:
        """Ids of each text without special tokens: all of them, or more than `room` where there are more."""
        contents: list[Int32] = [np.zeros(0, np.int32)] * len(texts)
        characters = (room + CUT_MARGIN_TOKENS) * CHARACTERS_PER_TOKEN
        pending = list(range(len(texts)))
        while pending:
            unfinished = []
            for start in range(0, len(pending), TEXTS_AT_A_TIME):
                rows = pending[start : start + TEXTS_AT_A_TIME]
                encoded = self._vocabulary.encode_batch_fast(
                    [texts[row][:characters] for row in rows], add_special_tokens=False
                )
                for row, encoding in zip(rows, encoded, strict=True):
                    whole = len(texts[row]) <= characters
                    if whole or len(encoding) > room + CUT_MARGIN_TOKENS:
                        contents[row] = np.array(encoding.ids, np.int32)
                    else:
                        unfinished.append(row)
            pending = unfinished
            characters *= 4
        return contents

    def _framed(self, content: Int32) -> Int32:
        """Content between the special tokens, with a CLS at every position divisible by `mcls_every`."""
        every = self.settings.mcls_every
        if every is not None:
            starts = np.arange(every - len(self._prefix), len(content), every - 1)
            content = np.insert(content, starts, self._prefix[0])
        return np.concatenate([self._prefix, content, self._suffix])


def _special_frame(vocabulary: Vocabulary) -> tuple[Int32, Int32]:
    """Ids that the tokenizer puts before and after a text, such as [CLS] and [SEP]."""
    plain = vocabulary.encode("a", add_special_tokens=False).ids
    framed = vocabulary.encode("a", add_special_tokens=True).ids
    start = next((i for i in range(len(framed)) if framed[i : i + len(plain)] == plain), None)
    if not plain or start is None or start == 0 or start + len(plain) == len(framed):
        raise CheckpointError(
            f"{TOKENIZER_FILE} must put a first and a last special token around a text, such as [CLS] and "
            f"[SEP]; it makes {framed} of {plain}"
        )
    return np.array(framed[:start], np.int32), np.array(framed[start + len(plain) :], np.int32)


def _special_ids(vocabulary: Vocabulary, tokenizer_json: bytes, frame: list[np.int32]) -> frozenset[int]:
    """Ids of cls, sep/eos, bos, pad, unk and mask: never lexical terms."""
    added = vocabulary.get_added_tokens_decoder()
    named = {i for i, token in added.items() if token.special and token.content in SPECIAL_NAMES}
    model = json.loads(tokenizer_json)["model"]
    unknown = model.get("unk_id")
    if unknown is None and model.get("unk_token"):
        unknown = vocabulary.token_to_id(model["unk_token"])
    return frozenset({*named, *map(int, frame), *([] if unknown is None else [int(unknown)])})


def valid_text(text: str) -> str:
    """The text with lone surrogates, which no Unicode encoding allows, replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
