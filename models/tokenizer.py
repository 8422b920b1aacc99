"""Text to token ids within special tokens, instruction and length limit; truncation is reported per text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt

from tercet.models.checkpoint import (
    CONFIG_FILE,
    TOKENIZER_CONFIG,
    EncodingSettings,
    embedded_tokens,
    read_json,
)
from tercet.models.errors import CheckpointError, TextTooLongError, UnsupportedError
from tercet.models.formats.late_interaction import KEY as LATE_INTERACTION
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.representations import Bool, InputType, Int32, Int64, TokenBatch, offsets_of
from tercet.models.tokens.agreement import require_agreement
from tercet.models.tokens.capitals import in_small_letters
from tercet.models.tokens.json_vocabulary import TOKENIZER_JSON, JsonVocabulary, without_tokens_from
from tercet.models.tokens.sentencepiece_vocabulary import SENTENCEPIECE_MODEL, SentencePieceVocabulary
from tercet.models.tokens.vocabulary import TokenSpans, Vocabulary

# Of a folder the first that is there.
TOKENIZER_FILES = (TOKENIZER_JSON, SENTENCEPIECE_MODEL)
REMEDY = "make it with transformers, F being the folder: AutoTokenizer.from_pretrained(F).save_pretrained(F)"
# Where a checkpoint that fills up queries does not say with what.
MASK_NAMES = ("[MASK]", "<mask>")
SPACE_SIGN = "▁"  # of SentencePiece, for a space before a word
# A text is first read up to this many characters for each token allowed, and further only if that gives too
# few tokens; so the cost of a very long text depends on the length limit, not on the text.
CHARACTERS_PER_TOKEN = 16
# Tokens near the cut of a prefix may differ from those of the whole text; this many are not relied on.
CUT_MARGIN_TOKENS = 128


class Tokenizer:
    """A checkpoint's vocabulary with its special tokens, instructions and length limit.

    Safe to share between threads: nothing is changed after construction (padding and truncation are done on
    arrays). digest: sha256 of the file, hexadecimal.
    """

    def __init__(self, content: bytes, settings: EncodingSettings, *, digest: str | None = None) -> None:
        """content: of one of TOKENIZER_FILES; digest: of the file, where that is not just this content.

        Raises CheckpointError.
        """
        vocabulary = _vocabulary_of(content, framed=settings.special_tokens)
        self.digest = digest or hashlib.sha256(content).hexdigest()
        self.settings = settings
        self._content = content
        self._vocabulary = vocabulary
        self._suffix = vocabulary.suffix
        self._prefixes = {kind: self._prefix(kind) for kind in get_args(InputType)}
        if settings.mcls_every is not None and not len(vocabulary.prefix):
            raise CheckpointError("mcls_every needs a tokenizer that puts a special token before texts")
        self._expansion_id = self._id_of_expansion()
        self._skipped = self._skiplist()
        self.vocabulary_size = vocabulary.size
        self.special_ids = vocabulary.special_ids
        self.pad_id = vocabulary.pad_id
        given = {settings.query_instruction, settings.document_instruction} - {""}
        self._instructions = vocabulary.token_ids([text.rstrip() for text in sorted(given)])

    @staticmethod
    def load(folder: Path, settings: EncodingSettings) -> Tokenizer:
        """The tokenizer of a checkpoint folder. Raises CheckpointError where it has none that can be read."""
        folder = transformer_folder(folder)
        path = next((folder / name for name in TOKENIZER_FILES if (folder / name).is_file()), None)
        if path is None:
            raise CheckpointError(f"{folder / TOKENIZER_JSON} is missing; {REMEDY}")
        if path.name == SENTENCEPIECE_MODEL:
            _require_sentencepiece(folder)
        content = path.read_bytes()
        tokenizer = Tokenizer(content, settings)
        config = folder / TOKENIZER_CONFIG
        if path.name == TOKENIZER_JSON and config.is_file():
            require_agreement(content, read_json(config), config, REMEDY)
        rows = embedded_tokens(folder)
        if rows is None or tokenizer.vocabulary_size <= rows:
            return tokenizer
        # EmbeddingGemma's file has a token for images, which its model has no vector for.
        if isinstance(tokenizer._vocabulary, JsonVocabulary):
            tokenizer = Tokenizer(without_tokens_from(rows, content), settings, digest=tokenizer.digest)
        frame = np.concatenate([*tokenizer.frame("query"), *tokenizer.frame("document")])
        if max(tokenizer.vocabulary_size, 1 + int(frame.max())) > rows:
            raise CheckpointError(
                f"{path} has {tokenizer.vocabulary_size} tokens, but {CONFIG_FILE} says vocab_size {rows}, "
                "so that some have no vector; take both files of one model"
            )
        return tokenizer

    @staticmethod
    def from_bytes(content: bytes, settings: EncodingSettings) -> Tokenizer:
        """A tokenizer from the bytes of such a file, as another process serves them."""
        return Tokenizer(content, settings)

    def to_bytes(self) -> bytes:
        """The file that this was made from, without tokens that the model has no vector for."""
        return self._content

    @property
    def file_name(self) -> str:
        """What that file is called: one of TOKENIZER_FILES."""
        return TOKENIZER_JSON if isinstance(self._vocabulary, JsonVocabulary) else SENTENCEPIECE_MODEL

    def frame(self, input_type: InputType) -> tuple[Int32, Int32]:
        """Ids of the special tokens before and after a text of this type."""
        return self._prefixes[input_type], self._suffix

    @property
    def separator(self) -> Int32:
        """Ids of the special tokens between two texts that are read together."""
        return self._vocabulary.separator

    def instruction(self, input_type: InputType) -> str:
        """What stands before a text of this type."""
        settings = self.settings
        return settings.query_instruction if input_type == "query" else settings.document_instruction

    def is_instruction(self, batch: TokenBatch) -> Bool:
        """Which tokens of texts bool[ΣL] belong to the instruction before a text.

        They are found by their ids: a text without an instruction that itself begins with that of the other
        type is taken for one with it.
        """
        inside: Bool = np.zeros(len(batch.token_ids), np.bool_)
        if not self._instructions:
            return inside
        before = np.where(batch.is_query, len(self._prefixes["query"]), len(self._prefixes["document"]))
        starts = batch.offsets[:-1] + before
        room = batch.lengths - before - len(self._suffix)
        for instruction in self._instructions:
            positions = starts[room >= len(instruction), None] + np.arange(len(instruction))
            inside[positions[(batch.token_ids[positions] == instruction).all(axis=1)]] = True
        return inside

    def has_vector(self, batch: TokenBatch) -> Bool:
        """Which tokens of texts bool[ΣL] have a ColBERT vector.

        As in BGE-M3 all but a first special one, and with MCLS but each CLS; as in ColBERT all, but for those
        of the skiplist.
        """
        late = self.settings.late_interaction
        if late is not None:
            skipped = np.isin(batch.token_ids, self._skipped)
            documents, queries = ("document" in late.skiplist_types, "query" in late.skiplist_types)
            skips = np.repeat(np.where(batch.is_query, queries, documents), batch.lengths)
            kept: Bool = ~(skipped & skips)
            return kept
        position = np.arange(len(batch.token_ids)) - np.repeat(batch.offsets[:-1], batch.lengths)
        every = self.settings.mcls_every
        has_vector: Bool = position >= min(1, len(self._vocabulary.prefix))
        if every is not None:
            last = np.repeat(batch.lengths - 1, batch.lengths)
            has_vector &= (position % every != 0) | (position == last)
        return has_vector

    def token_strings(self, token_ids: npt.NDArray[np.int32]) -> list[str]:
        """The vocabulary's piece of each id; an id outside the vocabulary gives an empty string."""
        return [self._vocabulary.piece(i) or "" for i in token_ids.tolist()]

    def shown_tokens(self, token_ids: npt.NDArray[np.int32]) -> list[str]:
        """The pieces as people read them: with a space where SentencePiece has its sign for one."""
        return [piece.replace(SPACE_SIGN, " ") for piece in self.token_strings(token_ids)]

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
        limit) keeps its first ones and its last special token, and is marked truncated. Queries of some
        checkpoints are filled up (`tercet.models.formats.late_interaction`).
        Raises TextTooLongError instead where `truncate` is false, and UnsupportedError for a
        `max_length` outside what the checkpoint allows.
        """
        limit = self.length_limit(max_length, input_type)
        room = self._room(limit, input_type)
        instruction = self.instruction(input_type)
        contents = self._contents([valid_text(instruction + self._as_read(text)) for text in texts], room)
        truncated: Bool = np.fromiter((len(c) > room for c in contents), np.bool_, len(contents))
        if not truncate and truncated.any():
            raise too_long(int(truncated.argmax()), limit)
        rows = [self._framed(content[:room], input_type) for content in contents]
        unattended = None
        if self._expansion_id is not None and input_type == "query":
            rows, unattended = self._expanded(rows, limit)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        token_ids = np.concatenate(rows) if rows else np.zeros(0, np.int32)
        queries = np.full(len(rows), input_type == "query")
        return TokenBatch(token_ids, offsets_of(lengths), truncated, queries, unattended)

    def tokenize_whole(self, texts: Sequence[str]) -> TokenBatch:
        """Token ids of texts as they are, however long: no instruction, no special tokens, nothing cut."""
        room = max(map(len, texts), default=0)  # for any text: a token has a character at least
        contents = self._contents([valid_text(self._as_read(text)) for text in texts], room)
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        token_ids = np.concatenate(contents) if contents else np.zeros(0, np.int32)
        return TokenBatch(token_ids, offsets_of(lengths), np.zeros(len(contents), np.bool_))

    def spans(self, text: str) -> TokenSpans:
        """Where the tokens of a text lie, without special tokens and instruction."""
        return self._vocabulary.spans(valid_text(self._as_read(text)))

    def text_of(self, token_ids: Sequence[int], *, special: bool = False) -> str:
        """The text of tokens, without those that the vocabulary does not have, and without special ones
        unless asked.
        """
        known = [id for id in token_ids if id < self.vocabulary_size]
        return self._vocabulary.text_of(known, special=special)

    def tail(self, text: str, input_type: InputType = "document") -> str:
        """The last whole words of a text that fit into the length limit; the text where it does."""
        room = self._room(self._most(input_type), input_type) - self._length(self.instruction(input_type))
        spans = self.spans(text)
        if len(spans) <= room:
            return text
        first = len(spans) - room
        begins = np.flatnonzero(spans.begins_word[first:])
        return text[spans.starts[first + (int(begins[0]) if len(begins) else 0)] :]

    def document_room(self, limit: int) -> int:
        """Tokens of a document's text that fit into `limit` beside special tokens and instruction."""
        return self._room(limit, "document") - self._length(self.settings.document_instruction)

    def length_limit(self, max_length: int | None, input_type: InputType = "document") -> int:
        """Tokens of a text at most; some checkpoints take shorter queries than documents. Raises
        UnsupportedError for a `max_length` that the checkpoint does not allow.
        """
        most = self.settings.max_length
        least = len(self._prefixes[input_type]) + len(self._suffix) + 1
        limit = most if max_length is None else max_length
        if not least <= limit <= most:
            raise UnsupportedError(f"max_length is {limit}; this encoder takes {least} to {most} tokens")
        return min(limit, self._most(input_type))

    def _most(self, input_type: InputType) -> int:
        late, most = self.settings.late_interaction, self.settings.max_length
        if late is None or late.query_length is None or input_type == "document":
            return most
        return min(most, late.query_length)

    def _prefix(self, input_type: InputType) -> Int32:
        """The special tokens before a text, with the marker of its type after the first."""
        prefix, late = self._vocabulary.prefix, self.settings.late_interaction
        marker = "" if late is None else late.marker(input_type)
        if not marker:
            return prefix
        ids = [self._vocabulary.id_of(piece) for piece in (marker, marker.strip())]
        id = next((known for known in ids if known is not None), None)
        if id is None:
            raise CheckpointError(
                f"the marker {marker!r} of a {input_type} is not one token of {self.file_name}; add it "
                f"there, or name another as {LATE_INTERACTION}.{input_type}_marker"
            )
        if not len(prefix):
            raise CheckpointError(
                f"{self.file_name} puts no token before a text, after which a marker stands"
            )
        return np.concatenate([prefix[:1], np.array([id], np.int32), prefix[1:]])

    def _id_of_expansion(self) -> int | None:
        """The token that queries are filled up with, None where they are not."""
        late = self.settings.late_interaction
        if late is None or late.expansion_length is None:
            return None
        names = MASK_NAMES if late.expansion_token is None else (late.expansion_token,)
        id = next((id for id in map(self._vocabulary.id_of, names) if id is not None), None)
        if id is None:
            raise CheckpointError(
                f"{self.file_name} has none of the tokens {list(names)}, with which queries are filled up; "
                f"name one as {LATE_INTERACTION}.expansion_token"
            )
        return id

    def _skiplist(self) -> Int32:
        """Ids of the tokens that have no vector, those that the vocabulary has."""
        late = self.settings.late_interaction
        ids = map(self._vocabulary.id_of, () if late is None else late.skiplist)
        return np.array([id for id in ids if id is not None], np.int32)

    def _expanded(self, rows: list[Int32], limit: int) -> tuple[list[Int32], Int64 | None]:
        """Queries filled up, and how many of each one's last tokens the others do not see, int64[B]."""
        late = self.settings.late_interaction
        assert late is not None  # noqa: S101 - or queries are not filled up
        least = min(late.expansion_length or 0, limit)
        added = np.array([max(0, least - len(row)) for row in rows], np.int64)
        filling = np.full(least, self._expansion_id, np.int32)
        filled = [np.append(row, filling[:count]) for row, count in zip(rows, added.tolist(), strict=True)]
        return filled, None if late.attend_to_expansion or not added.any() else added

    def _as_read(self, text: str) -> str:
        return in_small_letters(text) if self.settings.lower_capitals else text

    def _length(self, text: str) -> int:
        (token_ids,) = self._vocabulary.token_ids([text])
        return len(token_ids)

    def _room(self, limit: int, input_type: InputType) -> int:
        """Tokens of content that fit into `limit` beside the special tokens."""
        room = limit - len(self._prefixes[input_type]) - len(self._suffix)
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
            encoded = self._vocabulary.token_ids([texts[row][:characters] for row in pending])
            for row, token_ids in zip(pending, encoded, strict=True):
                whole = len(texts[row]) <= characters
                if whole or len(token_ids) > room + CUT_MARGIN_TOKENS:
                    contents[row] = token_ids
                else:
                    unfinished.append(row)
            pending = unfinished
            characters *= 4
        return contents

    def _framed(self, content: Int32, input_type: InputType) -> Int32:
        """Content between the special tokens, with a CLS at every position divisible by `mcls_every`."""
        prefix, every = self._prefixes[input_type], self.settings.mcls_every
        if every is not None:
            starts = np.arange(every - len(prefix), len(content), every - 1)
            content = np.insert(content, starts, prefix[0])
        return np.concatenate([prefix, content, self._suffix])


def _vocabulary_of(content: bytes, *, framed: bool) -> Vocabulary:
    """content: of a `tokenizer.json`, or of a `sentencepiece.bpe.model`, which begins with a piece and has
    special tokens around texts anyway.
    """
    is_message = content[:1] == b"\n" and not content[:64].lstrip().startswith(b"{")
    return SentencePieceVocabulary(content) if is_message else JsonVocabulary(content, framed=framed)


def _require_sentencepiece(folder: Path) -> None:
    """Raises CheckpointError where a folder does not say that its ids are XLM-RoBERTa's."""
    path = folder / TOKENIZER_CONFIG
    named = read_json(path).get("tokenizer_class") if path.exists() else None
    if not str(named).startswith("XLMRobertaTokenizer"):
        raise CheckpointError(
            f"{folder / TOKENIZER_JSON} is missing, and {TOKENIZER_CONFIG} does not name "
            f"XLMRobertaTokenizer, whose ids {SENTENCEPIECE_MODEL} would have: {REMEDY}"
        )


def too_long(number: int, limit: int) -> TextTooLongError:
    """The error of a text that must not be cut. number: its own among the caller's texts, from 0."""
    return TextTooLongError(
        f"text {number} has more than {limit} tokens, the limit; shorten it, or allow truncation"
    )


def valid_text(text: str) -> str:
    """The text with lone surrogates, which no Unicode encoding allows, replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
