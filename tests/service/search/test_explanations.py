"""Tokens and numbers of explanations, as people read them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tercet.cli.encoders import tokenizer_of
from tercet.service.search.explanations import _aligned, _query_tokens, _rounded


def test_pieces_of_the_prompt_are_marked_and_a_space_is_one() -> None:
    tokenizer = tokenizer_of("multi-m3")
    assert tokenizer is not None
    count = int(tokenizer.has_vector(tokenizer.tokenize(["green tea"], "query")).sum())
    query: Any = SimpleNamespace(colbert=SimpleNamespace(vectors=np.zeros((count, 1))))
    tokens, of_prompt = _query_tokens("green tea", query, tokenizer)
    assert "".join(tokens).startswith(" query: green tea")
    marked = [token for token, is_prompt in zip(tokens, of_prompt, strict=True) if is_prompt]
    assert "".join(marked).strip() == "query:"
    alignment: Any = SimpleNamespace(
        document_vectors=np.arange(count), similarities=np.full(count, 1 / 3, np.float32), window=None
    )
    aligned = _aligned(alignment, tokens, of_prompt, [None] * count)
    assert [pair.get("prompt", False) for pair in aligned] == of_prompt
    assert aligned[0]["similarity"] == 0.333333


def test_numbers_have_the_decimals_of_scores() -> None:
    assert _rounded(np.float32([0.1, 2.0])) == [0.1, 2.0]
