"""Text to tokens: special tokens, truncation, odd text, threads and MCLS."""

import json
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import CheckpointError, EncoderFailedError, TextTooLongError, UnsupportedError
from tercet.models.representations import TokenBatch
from tercet.models.tokenizer import Tokenizer

# Ids in the vocabulary of conftest.py.
PAD, UNK, CLS, SEP, MASK, WING, AIR, HEAT, WAVE = range(9)


@pytest.fixture
def tokenizer(tokenizer_json: bytes) -> Tokenizer:
    return Tokenizer(tokenizer_json, EncodingSettings(max_length=16))


def test_special_tokens_around_each_text(tokenizer: Tokenizer) -> None:
    batch = tokenizer.tokenize(["wing air", "", "wave"])
    assert batch.token_ids.tolist() == [CLS, WING, AIR, SEP, CLS, SEP, CLS, WAVE, SEP]
    assert batch.offsets.tolist() == [0, 4, 6, 9]
    assert batch.token_ids.dtype == np.int32
    assert not batch.truncated.any()


def test_special_ids_come_from_the_file_alone(tokenizer: Tokenizer, golden: Path) -> None:
    assert tokenizer.special_ids == {PAD, UNK, CLS, SEP, MASK}
    assert tokenizer.pad_id == PAD
    other = Tokenizer.load(golden / "checkpoint", EncodingSettings(max_length=62))
    assert other.token_strings(np.array(sorted(other.special_ids), np.int32)) == [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "<mask>",
    ]
    assert other.pad_id == 1


def test_truncation_keeps_the_first_tokens_and_the_last_special_one(tokenizer: Tokenizer) -> None:
    batch = tokenizer.tokenize(["wing air heat wave", "wing"], max_length=4)
    assert batch.token_ids.tolist() == [CLS, WING, AIR, SEP, CLS, WING, SEP]
    assert batch.truncated.tolist() == [True, False]


def test_exactly_the_limit_is_not_truncated(tokenizer: Tokenizer) -> None:
    batch = tokenizer.tokenize(["wing air"], max_length=4)
    assert batch.truncated.tolist() == [False]


def test_truncation_not_allowed(tokenizer: Tokenizer) -> None:
    with pytest.raises(TextTooLongError, match="text 1 has more than 4 tokens"):
        tokenizer.tokenize(["wing", "wing air heat"], max_length=4, truncate=False)


@pytest.mark.parametrize("length", [0, 2, 17, -1])
def test_a_limit_out_of_range(tokenizer: Tokenizer, length: int) -> None:
    with pytest.raises(UnsupportedError, match=f"max_length is {length}; this encoder takes 3 to 16 tokens"):
        tokenizer.tokenize(["wing"], max_length=length)


def test_whole_texts_have_neither_limit_nor_frame(tokenizer_json: bytes) -> None:
    instructed = EncodingSettings(max_length=4, query_instruction="heat", document_instruction="heat")
    tokenizer = Tokenizer(tokenizer_json, instructed)
    batch = tokenizer.tokenize_whole(["wing air " * 50, "", "wave"])
    assert batch.token_ids.tolist() == [WING, AIR] * 50 + [WAVE]
    assert batch.offsets.tolist() == [0, 100, 100, 101]
    assert len(tokenizer.tokenize_whole([])) == 0


def test_instructions_by_input_type(tokenizer_json: bytes) -> None:
    settings = EncodingSettings(max_length=16, query_instruction="wave ", document_instruction="heat ")
    tokenizer = Tokenizer(tokenizer_json, settings)
    assert tokenizer.tokenize(["wing"], "query").token_ids.tolist() == [CLS, WAVE, WING, SEP]
    assert tokenizer.tokenize(["wing"], "document").token_ids.tolist() == [CLS, HEAT, WING, SEP]


@pytest.mark.slow
def test_texts_in_capitals_are_read_in_small_letters_where_the_checkpoint_says_so(
    repository: Path,
) -> None:
    capitals, small = "WING OF THE AIR, HEAT OF THE WAVE", "wing of the air, heat of the wave"
    kept, lowered = (
        Tokenizer.load(
            repository / "checkpoints" / "multi-m3",
            EncodingSettings(lower_capitals=lower, query_instruction="QUERY: "),
        )
        for lower in (False, True)
    )
    for tokenizer, same in ((kept, False), (lowered, True)):
        (first, second), (third, fourth) = (
            np.split(batch.token_ids, batch.offsets[1:-1])
            for batch in (
                tokenizer.tokenize([capitals, small], "query"),
                tokenizer.tokenize_whole([capitals, small]),
            )
        )
        assert (first.tolist() == second.tolist()) is same
        assert (third.tolist() == fourth.tolist()) is same
    spans, expected = lowered.spans(capitals), kept.spans(small)
    np.testing.assert_array_equal(spans.starts, expected.starts)
    # The instruction is no part of the text, and stays as the body was trained with it.
    start = kept.tokenize([""], "query").token_ids[:-1].tolist()
    assert lowered.tokenize([capitals], "query").token_ids[: len(start)].tolist() == start


def test_which_tokens_are_the_instruction(tokenizer_json: bytes) -> None:
    settings = EncodingSettings(max_length=16, query_instruction="wave heat ", document_instruction="heat ")
    tokenizer = Tokenizer(tokenizer_json, settings)
    queries = tokenizer.tokenize(["wave heat wing", "", "heat"], "query")
    assert queries.token_ids.tolist() == [
        *(CLS, WAVE, HEAT, WAVE, HEAT, WING, SEP),
        *(CLS, WAVE, HEAT, SEP),
        *(CLS, WAVE, HEAT, HEAT, SEP),
    ]
    assert np.flatnonzero(tokenizer.is_instruction(queries)).tolist() == [1, 2, 8, 9, 12, 13]
    documents = tokenizer.tokenize(["heat wave", "wing"], "document")
    assert documents.token_ids.tolist() == [CLS, HEAT, HEAT, WAVE, SEP, CLS, HEAT, WING, SEP]
    assert np.flatnonzero(tokenizer.is_instruction(documents)).tolist() == [1, 6]
    cut = tokenizer.tokenize(["wing"], "query", max_length=3)  # within the instruction
    assert cut.token_ids.tolist() == [CLS, WAVE, SEP]
    assert not tokenizer.is_instruction(cut).any()


def test_without_instructions_no_token_is_one(tokenizer: Tokenizer) -> None:
    assert not tokenizer.is_instruction(tokenizer.tokenize(["query: wing", ""])).any()


@pytest.mark.parametrize("text", ["\0", "\ud800", "\udfff\ud800", "a\0b", "🙂", "‮", "\ufeff", "é" * 50])
def test_odd_texts_are_tokenized(tokenizer: Tokenizer, text: str) -> None:
    batch = tokenizer.tokenize([text])
    assert batch.token_ids[0] == CLS
    assert batch.token_ids[-1] == SEP


def test_a_lone_surrogate_reads_as_the_replacement_character(golden: Path) -> None:
    tokenizer = Tokenizer.load(golden / "checkpoint", EncodingSettings(max_length=62))
    lone, replaced, pair = tokenizer.tokenize(["\ud800 air", "� air", "\ud83d\ude42 air"]).lengths.tolist()
    assert lone == replaced == pair
    np.testing.assert_array_equal(
        tokenizer.tokenize(["a\ud800"]).token_ids, tokenizer.tokenize(["a�"]).token_ids
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "wing air " * 200_000,
        "x" * 2_000_000,
        " " * 2_000_000 + "wing",
        "별" * 1_000_000,
        "wing" + " " * 2_000_000,
    ],
)
def test_megabytes_of_text_take_little_memory(tokenizer: Tokenizer, text: str) -> None:
    tracemalloc.start()
    try:
        batch = tokenizer.tokenize([text])
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert batch.lengths[0] <= 16
    assert peak_bytes < 20 * len(text) + 1_000_000


def test_a_text_is_read_on_until_it_has_enough_tokens(tokenizer: Tokenizer) -> None:
    blank = " " * 300_000
    batch = tokenizer.tokenize([blank + "wing air", blank + "wing " * 20])
    assert batch.token_ids[:4].tolist() == [CLS, WING, AIR, SEP]
    assert batch.truncated.tolist() == [False, True]


def test_a_long_prefix_gives_the_same_tokens_as_the_whole(golden: Path) -> None:
    settings = EncodingSettings(max_length=62)
    tokenizer = Tokenizer.load(golden / "checkpoint", settings)
    text = "The heat of the air, 밤하늘의 별 東京は " * 400
    from tokenizers import Tokenizer as Library

    library = Library.from_str((golden / "checkpoint" / "tokenizer.json").read_text("utf-8"))
    library.no_truncation()
    whole = library.encode(text).ids
    assert tokenizer.tokenize([text]).token_ids.tolist() == [*whole[:61], whole[-1]]


def test_threads_share_a_tokenizer(tokenizer: Tokenizer) -> None:
    failures: list[Exception] = []

    def work(length: int) -> None:
        try:
            for _ in range(200):
                batch = tokenizer.tokenize(["wing air heat wave wing air"] * 4, max_length=length)
                assert batch.lengths.tolist() == [min(length, 8)] * 4
        except Exception as error:  # noqa: BLE001 - any failure of the thread fails the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(length,)) for length in (4, 5, 6, 16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_mcls_puts_a_cls_at_every_fourth_position(tokenizer_json: bytes) -> None:
    tokenizer = Tokenizer(tokenizer_json, EncodingSettings(max_length=16, mcls_every=4))
    batch = tokenizer.tokenize(["wing air heat wave", "wing air heat", "wing"])
    assert batch.take(np.array([0])).token_ids.tolist() == [CLS, WING, AIR, HEAT, CLS, WAVE, SEP]
    assert batch.take(np.array([1])).token_ids.tolist() == [CLS, WING, AIR, HEAT, SEP]
    assert batch.take(np.array([2])).token_ids.tolist() == [CLS, WING, SEP]


@pytest.mark.parametrize("limit", range(4, 17))
def test_mcls_stays_within_the_limit(tokenizer_json: bytes, limit: int) -> None:
    tokenizer = Tokenizer(tokenizer_json, EncodingSettings(max_length=16, mcls_every=4))
    ids = tokenizer.tokenize(["wing " * 40], max_length=limit).token_ids
    # One place may stay free: a CLS is inserted only where a token follows it.
    assert limit - 1 <= len(ids) <= limit
    assert (np.flatnonzero(ids == CLS) % 4 == 0).all()
    assert ids[-1] == SEP
    assert ids[-2] != CLS


def test_token_strings(tokenizer: Tokenizer) -> None:
    assert tokenizer.token_strings(np.array([WING, PAD, 10**6], np.int32)) == ["wing", "[PAD]", ""]


def test_bytes_make_the_same_tokenizer(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_bytes(tokenizer.to_bytes(), tokenizer.settings)
    assert again.digest == tokenizer.digest
    assert again.vocabulary_size == tokenizer.vocabulary_size
    assert again.tokenize(["wing!"]).token_ids.tolist() == tokenizer.tokenize(["wing!"]).token_ids.tolist()


def test_no_tokenizer_json(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing.*save_pretrained"):
        Tokenizer.load(tmp_path, EncodingSettings())


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"model": 3}'])
def test_a_damaged_tokenizer_json(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is damaged or not understood"):
        Tokenizer.from_bytes(content, EncodingSettings())


def test_a_tokenizer_without_special_tokens(tokenizer_json: bytes) -> None:
    from tokenizers import Tokenizer as Library
    from tokenizers import processors

    library = Library.from_buffer(tokenizer_json)
    library.post_processor = processors.Sequence([])
    with pytest.raises(CheckpointError, match="must put a special token before a text, after it, or both"):
        Tokenizer.from_bytes(library.to_str().encode(), EncodingSettings())


def test_added_tokens_that_the_model_has_no_vector_for(tokenizer_json: bytes, tmp_path: Path) -> None:
    """EmbeddingGemma's tokenizer has one for images; its text would stop every pass that it is in."""
    content = json.loads(tokenizer_json)
    size = len(content["model"]["vocab"])
    image = {**content["added_tokens"][0], "id": size, "content": "[IMAGE]"}
    content["added_tokens"].append(image)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": size}))
    found = Tokenizer.load(tmp_path, EncodingSettings(max_length=16))
    assert found.vocabulary_size == size
    assert found.tokenize(["wing [IMAGE]"]).token_ids.max() < size
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": size + 1}))
    whole = Tokenizer.load(tmp_path, EncodingSettings(max_length=16))
    assert whole.tokenize(["wing [IMAGE]"]).token_ids.tolist() == [CLS, WING, size, SEP]
    assert whole.digest == found.digest  # so that collections stay readable


def test_a_tokenizer_of_another_model(tokenizer_json: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 40}))
    with pytest.raises(CheckpointError, match=r"has 71 tokens, but config\.json says vocab_size 40"):
        Tokenizer.load(tmp_path, EncodingSettings())


def test_many_texts_are_tokenized_as_each_alone(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["wing " * (number % 40) + "wave" for number in range(70)]
    alone = [tokenizer.tokenize([text], max_length=9) for text in texts]
    monkeypatch.setattr(
        "tercet.models.tokenizer.CHARACTERS_PER_TOKEN", 1
    )  # so that long texts need a second look
    monkeypatch.setattr("tercet.models.tokenizer.CUT_MARGIN_TOKENS", 2)
    together = tokenizer.tokenize(texts, max_length=9)
    assert together.token_ids.tolist() == [id for batch in alone for id in batch.token_ids.tolist()]
    assert together.truncated.tolist() == [bool(batch.truncated[0]) for batch in alone]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["spans", "text_of"])
def test_long_texts_leave_the_interpreter_to_other_threads(embedded_checkpoint: Path, what: str) -> None:
    tokenizer = Tokenizer.load(embedded_checkpoint, EncodingSettings(max_length=16))
    ids = tokenizer.tokenize_whole(["tea "]).token_ids.tolist() * 300_000
    turns: list[bool] = []
    worked = threading.Event()

    def work() -> None:
        if what == "spans":
            tokenizer.spans("tea hot water " * 100_000)
        else:
            tokenizer.text_of(ids)
        worked.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not worked.wait(0.001):
        turns.append(True)
    thread.join()
    assert len(turns) > 40  # of hundreds; all but a few come after it where the lock is held


def test_a_batch_knows_its_queries(tokenizer: Tokenizer) -> None:
    queries = tokenizer.tokenize(["one"], "query")
    batch = TokenBatch.concatenate([tokenizer.tokenize(["one", "two"]), queries])
    assert batch.is_query.tolist() == [False, False, True]
    assert batch.take(np.array([2, 0])).is_query.tolist() == [True, False]
    assert not tokenizer.tokenize_whole(["one"]).is_query.any()


def changed(content: bytes, **values: object) -> bytes:
    """A tokenizer.json with other values in its model, and without those that are None."""
    described = json.loads(content)
    model = {**described["model"], **values}
    described["model"] = {name: value for name, value in model.items() if value is not None}
    return json.dumps(described).encode()


def without(content: bytes, piece: str) -> bytes:
    """A tokenizer.json without a piece."""
    described = json.loads(content)
    del described["model"]["vocab"][piece]
    described["added_tokens"] = [token for token in described["added_tokens"] if token["content"] != piece]
    return json.dumps(described).encode()


def test_a_vocabulary_without_its_unknown_token_is_refused(tokenizer_json: bytes) -> None:
    for content in (without(tokenizer_json, "[UNK]"), changed(tokenizer_json, unk_token="no such")):
        with pytest.raises(CheckpointError, match=r"tokenizer\.json has no token for what is not in its voc"):
            Tokenizer(content, EncodingSettings(max_length=16))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b"{}", b"[" * 100_000, b'{"model": {"type": "WordPiece", "vocab": {}}}'],
)
def test_what_the_library_does_not_take_is_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is damaged or not understood"):
        Tokenizer(content, EncodingSettings(max_length=16, special_tokens=False))


def test_ids_that_no_table_has_are_refused(tokenizer_json: bytes) -> None:
    described = json.loads(tokenizer_json)
    described["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [2**32 - 1]
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is damaged or not understood"):
        Tokenizer(json.dumps(described).encode(), EncodingSettings(max_length=16))
    described["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [500]
    found = Tokenizer(json.dumps(described).encode(), EncodingSettings(max_length=16))
    assert found.vocabulary_size == 501


class Panic(BaseException):
    """As those of the library's language, which are no Exception."""


@pytest.mark.parametrize("error", [Exception("no"), Panic("no")])
def test_errors_of_the_library_on_texts_are_named(
    error: BaseException, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def encode_batch_fast(self, *_: object, **__: object) -> None:
            raise error

        encode_batch = decode_batch = encode_batch_fast

    monkeypatch.setattr(tokenizer._vocabulary, "_library", Broken())
    for call, given in ((tokenizer.tokenize, ["a"]), (tokenizer.spans, "a"), (tokenizer.text_of, [5])):
        with pytest.raises(EncoderFailedError, match=r"tokenizer\.json does not take these texts: no"):
            call(given)  # type: ignore[operator]
