"""XLM-RoBERTa's kind of vocabulary: a small one, trained here, beside the same as a tokenizer.json."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers, processors

from tercet.models.checkpoint import TOKENIZER_CONFIG, EncodingSettings
from tercet.models.errors import CheckpointError
from tercet.models.tokenizer import Tokenizer
from tercet.models.tokens.sentencepiece_vocabulary import SENTENCEPIECE_MODEL, SentencePieceVocabulary

SENTENCES = [
    "hot tea is tea",
    "a train of steam",
    "steam and hot water",
    "차와 물",
    "물이 뜨겁다",
    "tea water",
] * 20
BEGIN, PAD, END, UNKNOWN = range(4)


def trained(vocab_size: int = 30, **options: int) -> bytes:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        vocab_size=vocab_size,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def content() -> bytes:
    return trained()


@pytest.fixture(scope="module")
def vocabulary(content: bytes) -> SentencePieceVocabulary:
    return SentencePieceVocabulary(content)


@pytest.fixture(scope="module")
def twin(content: bytes) -> Library:
    """The same pieces and scores, read by the other library."""
    model = SentencePieceProcessor(model_proto=content)
    shifted = [(model.id_to_piece(id), model.get_score(id)) for id in range(3, model.get_piece_size())]
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *shifted]
    library = Library(models.Unigram(pieces, unk_id=UNKNOWN, byte_fallback=False))
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", BEGIN), ("</s>", END)]
    )
    return library


def test_special_tokens_are_xlm_robertas(vocabulary: SentencePieceVocabulary) -> None:
    assert vocabulary.size == 30 + 2  # <pad> and <mask>
    assert [vocabulary.piece(id) for id in (0, 1, 2, 3, 31)] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert vocabulary.piece(32) is vocabulary.piece(-1) is None
    assert vocabulary.special_ids == {0, 1, 2, 3, 31}
    assert (vocabulary.prefix.tolist(), vocabulary.suffix.tolist(), vocabulary.pad_id) == ([0], [2], 1)


@pytest.mark.slow
@given(st.text(alphabet="teahowrsm 물차이\t\n\u3000", max_size=40))
@settings(max_examples=200, deadline=None)
def test_ids_and_spans_are_those_of_the_same_vocabulary_as_json(text: str) -> None:
    ours, theirs = _both()
    expected = theirs.encode(text, add_special_tokens=False)
    (ids,) = ours.token_ids([text])
    assert ids.dtype == np.int32
    assert ours.text_of(ids.tolist()).split() == text.split()
    # Divisions of a word that weigh alike are taken in either order.
    if ids.tolist() == expected.ids:
        spans = ours.spans(text)
        assert spans.token_ids.tolist() == ids.tolist()
        covered = {
            place for start, end in zip(spans.starts, spans.ends, strict=True) for place in range(start, end)
        }
        assert covered == {place for place, character in enumerate(text) if not character.isspace()}
        words = [n for n, piece in enumerate(expected.tokens) if piece.startswith("\u2581")]
        assert np.flatnonzero(spans.begins_word).tolist() == words
    else:
        assert sum(map(_score, ids.tolist())) == pytest.approx(sum(map(_score, expected.ids)), abs=1e-3)


_PAIR: list[tuple[SentencePieceVocabulary, Library]] = []


@pytest.fixture(scope="module", autouse=True)
def _pair(vocabulary: SentencePieceVocabulary, twin: Library) -> None:
    _PAIR[:] = [(vocabulary, twin)]


def _both() -> tuple[SentencePieceVocabulary, Library]:
    return _PAIR[0]


def _score(id: int) -> float:
    model: dict[str, list[tuple[str, float]]] = json.loads(_both()[1].to_str())["model"]
    return model["vocab"][id][1]


def test_what_no_piece_has_is_unknown(vocabulary: SentencePieceVocabulary) -> None:
    (ids,) = vocabulary.token_ids(["tea 😀"])
    assert UNKNOWN in ids.tolist()
    assert (
        vocabulary.token_ids(["", "  \n"])[0].tolist() == vocabulary.token_ids(["", "  \n"])[1].tolist() == []
    )
    assert len(vocabulary.spans("")) == 0


def test_a_special_token_in_a_text_is_text(vocabulary: SentencePieceVocabulary) -> None:
    (ids,) = vocabulary.token_ids(["tea </s> <s> <mask>"])
    assert not {BEGIN, END, PAD, 31} & set(ids.tolist())


def test_special_tokens_are_left_out_of_a_text(vocabulary: SentencePieceVocabulary) -> None:
    (ids,) = vocabulary.token_ids(["hot tea"])
    framed = [BEGIN, *ids.tolist(), END, PAD, 31]
    assert vocabulary.text_of(framed) == "hot tea"
    assert vocabulary.text_of(framed, special=True) == "<s> hot tea</s><pad><mask>"


def test_another_file_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"sentencepiece.bpe.model is damaged"):
        SentencePieceVocabulary(b"no model")
    with pytest.raises(CheckpointError, match="does not begin with <unk>, <s> and </s>"):
        SentencePieceVocabulary(trained(29, bos_id=-1))


def test_a_folder_says_whose_ids_they_are(content: bytes, tmp_path: Path) -> None:
    (tmp_path / SENTENCEPIECE_MODEL).write_bytes(content)
    for named in (None, "CamembertTokenizer"):
        if named is not None:
            (tmp_path / TOKENIZER_CONFIG).write_text(json.dumps({"tokenizer_class": named}))
        with pytest.raises(CheckpointError, match="does not name XLMRobertaTokenizer"):
            Tokenizer.load(tmp_path, EncodingSettings())
    (tmp_path / TOKENIZER_CONFIG).write_text(json.dumps({"tokenizer_class": "XLMRobertaTokenizerFast"}))
    tokenizer = Tokenizer.load(tmp_path, EncodingSettings(query_instruction="hot "))
    batch = tokenizer.tokenize(["tea"], "query")
    assert batch.token_ids[[0, -1]].tolist() == [BEGIN, END]
    assert tokenizer.text_of(batch.token_ids.tolist()) == "hot tea"
    elsewhere = Tokenizer.from_bytes(tokenizer.to_bytes(), tokenizer.settings)
    assert elsewhere.tokenize(["tea"], "query").token_ids.tolist() == batch.token_ids.tolist()
    assert elsewhere.digest == tokenizer.digest
    assert elsewhere.file_name == SENTENCEPIECE_MODEL


@pytest.mark.slow
def test_real_texts_have_the_ids_of_the_library_itself(shared_data: Path) -> None:
    model = shared_data.parent / "tokenizer" / "xlm-roberta" / SENTENCEPIECE_MODEL
    vocabulary = SentencePieceVocabulary(model.read_bytes())
    texts = [
        "how much protein per day",
        "뉴욕은 미국의 도시이다",
        "¿Qué es la fotosíntesis?",
        "ﬁne  ｗｉｎｇｓ",
    ]
    reference = SentencePieceProcessor(model_file=str(model))
    for text, ids in zip(texts, vocabulary.token_ids(texts), strict=True):
        assert ids.tolist() == [id + 1 for id in reference.encode(text)]
