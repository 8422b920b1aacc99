"""Document frequencies by hand, and queries weighed by the idf of their source, as a collection does it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.representations import offsets_of
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pair_table import read_tables
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import ALONE
from tercet.training.m3.document_frequencies import SourceIdf, document_frequencies, idf_of_all
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.m3.passage_index import PassageIndex
from tercet.training.m3.scores import side_scores
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.data import PairData, PairSource


def store(*texts: list[int]) -> TokenStore:
    ids = [token for text in texts for token in text]
    return TokenStore(np.array(ids, np.int32), offsets_of(np.array([len(text) for text in texts])))


def test_a_token_counts_once_a_passage() -> None:
    assert document_frequencies(store([1, 1, 2], [1], [3]), 5).tolist() == [0, 2, 1, 1, 0]


def test_idf_counts_passages_of_all_sources() -> None:
    # Token 1 is in three of four texts, twice in one of them; token 2 in one; token 0 in none.
    found = idf_of_all([store([1, 1, 2], [1]), store([1], [3])], 4)
    expected = [math.log(1 + (4 - n + 0.5) / (n + 0.5)) for n in (0, 3, 1, 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_factors_by_hand(tokenizer: Tokenizer) -> None:
    # Word 8 is in both passages, word 9 in one: ln(1.2) and ln(2), of mean (2 ln(1.2) + ln(2)) / 3.
    # The special tokens around them have no weight, so they do not count.
    first, last = 2, 3
    assert {first, last} <= tokenizer.special_ids
    idf = SourceIdf.of(store([first, 8, 9, last], [first, 8, last]), tokenizer)
    common, rare = math.log(1.2), math.log(2)
    mean = (2 * common + rare) / 3
    np.testing.assert_allclose(idf.factors[8:10], [common / mean, rare / mean], rtol=1e-6)


def test_only_lexical_weights_are_multiplied() -> None:
    ids = np.array([[2, 1, 2], [1, 0, 0]])
    lexical = torch.tensor([[0.5, 0.25, 1.0], [2.0, 0.0, 0.0]], requires_grad=True)
    vectors = torch.ones(2, 2, 3)
    queries = EncodedTexts(torch.ones(2, 4), lexical, ids, ids > 0, vectors, np.ones((2, 2), np.bool_))
    weighted = SourceIdf(np.array([9.0, 2.0, 4.0], np.float32)).weighted(queries)
    assert weighted.lexical.tolist() == [[2.0, 0.5, 4.0], [4.0, 0.0, 0.0]]
    assert weighted.dense is queries.dense
    assert weighted.vectors is queries.vectors
    weighted.lexical.sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    assert lexical.grad is not None
    assert lexical.grad.tolist() == [[4.0, 2.0, 4.0], [2.0, 9.0, 9.0]]


def test_training_ranks_as_a_collection_with_idf_does(
    tmp_path: Path, base_folder: Path, tokenizer: Tokenizer
) -> None:
    settings = EncodingSettings(pooling="mean", max_length=32, lexical="idf")
    torch.manual_seed(3)
    model = EncoderModel(load_body(base_folder), Heads(16, 8, settings)).eval()
    with torch.no_grad():
        model.heads.sparse.weight.fill_(0.0)
        model.heads.sparse.bias.fill_(0.5)  # with equal weights a term's mass is its document frequency
    encoder = TextEncoder(model, tokenizer, 64, "float32", "cpu")
    source = PairSource(path="pairs.jsonl", title="P", licence="CC0 1.0")
    data = PairData(sources=(source,), query_tokens=8, passage_tokens=16)
    (table,) = read_tables(data, tmp_path / "data", tmp_path / "work", tokenizer, 1, 1)
    rows = np.arange(len(table.passages))
    with torch.no_grad():
        queries = encoder.encode_all(table.queries.take(rows[:5]))
        passages = encoder.encode_all(table.passages.take(rows))
    idf = SourceIdf.of(table.passages, tokenizer)
    expected = side_scores(idf.weighted(queries), passages, ["sparse"])["sparse"]
    plain = side_scores(queries, passages, ["sparse"])["sparse"]
    index = PassageIndex(encoder, table, "sparse", tmp_path, ALONE)
    for place, (ranked, scores, _) in enumerate(index.ranked(rows[:5], len(rows))):
        assert len(ranked)
        assert (plain[place, ranked] > 0).all()
        torch.testing.assert_close(torch.from_numpy(scores), expected[place][ranked], atol=1e-5, rtol=1e-5)
    index.close()
