"""A vocabulary from a `tokenizer.json`, with the `tokenizers` library."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer as Library

from tercet.models.errors import CheckpointError, reason
from tercet.models.representations import Int32
from tercet.models.soundness import LARGEST_SIZE
from tercet.models.tokens.library_errors import loading, tokenizing
from tercet.models.tokens.vocabulary import TokenSpans

TOKENIZER_JSON = "tokenizer.json"
SPECIAL_NAMES = frozenset(
    {"[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "[BOS]", "[EOS]"}
    | {"<s>", "</s>", "<pad>", "<unk>", "<mask>", "<cls>", "<sep>", "<bos>", "<eos>"}
)
PAD_NAMES = ("[PAD]", "<pad>")
UNKNOWN = "\U0010ffff"  # a character that stands for nothing
# The library holds some 200 bytes for each token of the texts that it is given together.
TEXTS_AT_A_TIME = 32


class JsonVocabulary:
    """Nothing is changed after construction: padding and truncation are the library's state, and left off."""

    def __init__(self, content: bytes, *, framed: bool = True) -> None:
        """content: of the file; framed: whether texts stand between special tokens.

        Raises CheckpointError where it is damaged, or frames no text that should be.
        """
        with loading(TOKENIZER_JSON):
            library = Library.from_buffer(content)
            library.no_padding()
            library.no_truncation()
            self._library = library
            nothing = np.zeros(0, np.int32)
            self.prefix, self.suffix = _special_frame(library) if framed else (nothing, nothing)
            self.separator = _separator(library, self.prefix, self.suffix) if framed else nothing
            frame = [*self.prefix.tolist(), *self.suffix.tolist()]
            self.size = 1 + max([*library.get_vocab(with_added_tokens=True).values(), *frame])
            if self.size > LARGEST_SIZE:
                raise CheckpointError(
                    f"{TOKENIZER_JSON} has a token of id {self.size - 1}; ids lie below {LARGEST_SIZE}"
                )
            self.special_ids = _special_ids(library, content, frame)
            self.pad_id = next((i for i in map(library.token_to_id, PAD_NAMES) if i is not None), 0)
            _require_unknown(library)

    def token_ids(self, texts: Sequence[str]) -> list[Int32]:
        """Ids of each text without special tokens. Raises EncoderFailedError."""
        ids: list[Int32] = []
        with tokenizing(TOKENIZER_JSON):
            for start in range(0, len(texts), TEXTS_AT_A_TIME):
                some = list(texts[start : start + TEXTS_AT_A_TIME])
                encoded = self._library.encode_batch_fast(some, add_special_tokens=False)
                ids += [np.array(encoding.ids, np.int32) for encoding in encoded]
        return ids

    def spans(self, text: str) -> TokenSpans:
        """Ids of one text without special tokens, and where its tokens lie. Raises EncoderFailedError."""
        # As a batch of one: for a single text the interpreter's lock is held until all of it is done.
        with tokenizing(TOKENIZER_JSON):
            (encoding,) = self._library.encode_batch([text], add_special_tokens=False)
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        words = np.array([-1 if word is None else word for word in encoding.word_ids], np.int64)
        begins_word = np.ones(len(words), np.bool_)
        begins_word[1:] = words[1:] != words[:-1]
        return TokenSpans(np.array(encoding.ids, np.int32), offsets[:, 0], offsets[:, 1], begins_word)

    def piece(self, token_id: int) -> str | None:
        """The piece of an id, None where it has none."""
        piece: str | None = self._library.id_to_token(token_id)
        return piece

    def id_of(self, piece: str) -> int | None:
        """The id of a piece as it is written, None where there is none of that name."""
        id: int | None = self._library.token_to_id(piece)
        return id

    def text_of(self, token_ids: Sequence[int], *, special: bool = False) -> str:
        """The text of tokens, without special ones unless asked. Raises EncoderFailedError."""
        text: str
        # As `spans`, a batch of one.
        with tokenizing(TOKENIZER_JSON):
            (text,) = self._library.decode_batch([list(token_ids)], skip_special_tokens=not special)
        return text


def without_tokens_from(rows: int, content: bytes) -> bytes:
    """A `tokenizer.json` without the added tokens whose ids are `rows` or above; what they stand for is then
    read as any other text.
    """
    described = json.loads(content)
    added = described.get("added_tokens") or []
    described["added_tokens"] = [token for token in added if token["id"] < rows]
    return json.dumps(described, ensure_ascii=False).encode()


def _special_frame(library: Library) -> tuple[Int32, Int32]:
    """Ids that the tokenizer puts before and after a text, such as [CLS] and [SEP]."""
    plain = library.encode("a", add_special_tokens=False).ids
    framed = library.encode("a", add_special_tokens=True).ids
    start = next((i for i in range(len(framed)) if framed[i : i + len(plain)] == plain), None)
    if not plain or start is None or len(plain) == len(framed):
        raise CheckpointError(
            f"{TOKENIZER_JSON} must put a special token before a text, after it, or both, such as [CLS] and "
            f"[SEP]; it makes {framed} of {plain}"
        )
    return np.array(framed[:start], np.int32), np.array(framed[start + len(plain) :], np.int32)


def _separator(library: Library, prefix: Int32, suffix: Int32) -> Int32:
    """Ids that the tokenizer puts between two texts; those after a text where its file does not tell."""
    plain = library.encode("a", add_special_tokens=False).ids
    pair = library.encode("a", "a").ids
    between = pair[len(prefix) + len(plain) : len(pair) - len(plain) - len(suffix)]
    return np.array(between, np.int32) if between else suffix


def _require_unknown(library: Library) -> None:
    """Raises CheckpointError where a character that no vocabulary has could not be read."""
    try:
        library.encode_batch_fast([UNKNOWN], add_special_tokens=False)
    except Exception as error:  # the library's own are of no other class
        raise CheckpointError(
            f"{TOKENIZER_JSON} has no token for what is not in its vocabulary ({reason(error)}); name one "
            "that it has as the unknown token of its model"
        ) from error


def _special_ids(library: Library, content: bytes, frame: list[int]) -> frozenset[int]:
    """Ids of cls, sep/eos, bos, pad, unk and mask."""
    added = library.get_added_tokens_decoder()
    named = {i for i, token in added.items() if token.special and token.content in SPECIAL_NAMES}
    model = json.loads(content)["model"]
    unknown = model.get("unk_id")
    if unknown is None and model.get("unk_token"):
        unknown = library.token_to_id(model["unk_token"])
    return frozenset({*named, *frame, *([] if unknown is None else [int(unknown)])})
