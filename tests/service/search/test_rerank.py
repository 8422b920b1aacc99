"""Texts ordered by their three-way score with a query."""

from typing import Any

import pytest

from tercet.index.candidates import Weights
from tercet.models.encoder import encode
from tercet.models.errors import EncoderUnavailableError
from tercet.service.encoding.options import DOCUMENTS, TextOptions
from tercet.service.encoding.service import LocalEncoding
from tercet.service.exceptions import RequestTooLargeError
from tercet.service.load.pools import Pool
from tercet.service.search.rerank import rerank
from tercet.service.search.scoring import score_texts

TEXTS = [" ".join(["tea", "hot", "water"][: 1 + number % 3] * (1 + number % 7)) for number in range(50)]


async def test_many_windows_rank_as_one(tiny: Any, pool: Pool) -> None:
    encoding = LocalEncoding(tiny, batch_tokens=8, queue_tokens=1000)
    outcome = await rerank(encoding, pool, "hot tea", TEXTS, weights=Weights(), request_tokens=1000)
    query, documents = encode(tiny, ["hot tea"], "query"), encode(tiny, TEXTS)
    scores = score_texts(query, documents)
    assert [result.index for result in outcome.results] == sorted(
        range(len(TEXTS)), key=lambda row: (-scores[row].sum().round(5), row)
    )
    for result in outcome.results:
        assert result.score == pytest.approx(scores[result.index].sum(), abs=1e-5)
    assert outcome.tokens == 4 + documents.tokens.sum()
    best = await rerank(encoding, pool, "hot tea", TEXTS, weights=Weights(), request_tokens=1000, top_n=3)
    assert best.results == outcome.results[:3]
    await encoding.close()


async def test_texts_or_a_query_that_fail(tiny: Any, pool: Pool) -> None:
    encoding = LocalEncoding(tiny, batch_tokens=8, queue_tokens=1000)
    with pytest.raises(RequestTooLargeError, match="max_request_tokens"):
        await rerank(encoding, pool, "hot tea", TEXTS, weights=Weights(), request_tokens=100)

    class Gone(LocalEncoding):
        async def encode(self, texts: Any, options: TextOptions = DOCUMENTS, **given: Any) -> Any:
            if options.input_type == "query":
                raise EncoderUnavailableError("gone")
            return await super().encode(texts, options, **given)

    gone = Gone(tiny, batch_tokens=8, queue_tokens=1000)
    with pytest.raises(EncoderUnavailableError):
        await rerank(gone, pool, "hot tea", TEXTS, weights=Weights(), request_tokens=1000)
    await gone.close()
    await encoding.close()
