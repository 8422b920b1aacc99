"""XLM-RoBERTa's tokenizer, from its pieces with their scores and its normalization."""

from __future__ import annotations

from collections.abc import Sequence

from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

BEGIN, PAD, END, UNKNOWN, MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"


def unigram_tokenizer(pieces: Sequence[str], scores: Sequence[float], sentencepiece: bytes) -> Tokenizer:
    """pieces: by id, the special ones among them; sentencepiece: the model file with the normalization."""
    described = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # made by protobuf
    described.ParseFromString(sentencepiece)
    vocabulary = list(zip(pieces, scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=pieces.index(UNKNOWN), byte_fallback=False))
    tokenizer.normalizer = normalizers.Precompiled(described.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A {END}",
        special_tokens=[(token, pieces.index(token)) for token in (BEGIN, END)],
    )
    tokenizer.add_special_tokens([BEGIN, PAD, END, UNKNOWN, AddedToken(MASK, lstrip=True)])
    return tokenizer
