"""Collections of texts with BM25, and the scores that the formula gives them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tercet.index.bm25.formula import K1, SCALE, B
from tercet.index.candidates import Document
from tercet.index.collection import Collection


@pytest.fixture
def collection_of(build: Any, random_texts: Any) -> Callable[..., Collection]:
    """Publishes texts by id, beside vectors and weights that do not matter, with BM25 and no stems."""

    def publish(texts: Mapping[str, str], **changes: Any) -> Collection:
        documents = [Document(id, text) for id, text in texts.items()]
        settings = {"bm25": True, "bm25_language": "none", **changes}
        built: Collection = build((documents, random_texts(len(documents), 1)), **settings)
        return built

    return publish


@pytest.fixture(scope="session")
def formula() -> Callable[[Mapping[str, str], str], dict[str, float]]:
    """`s_bm25` of each text for a query, from the formula, words being what blanks part."""

    def scores(texts: Mapping[str, str], query: str) -> dict[str, float]:
        words = {id: text.split() for id, text in texts.items()}
        mean = sum(map(len, words.values())) / len(words) or 1.0
        found = {}
        for id, held in words.items():
            counted, score = Counter(held), 0.0
            for term, asked in sorted(Counter(query.split()).items()):
                holding = sum(term in others for others in words.values())
                rarity = math.log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
                norm = K1 * (1 - B + B * len(held) / mean)
                score += SCALE * asked * rarity * counted[term] / (counted[term] + norm)
            found[id] = score
        return found

    return scores


@pytest.fixture(scope="session")
def random_words() -> Callable[..., dict[str, str]]:
    """Texts of words with frequencies as in language; each `stretch` of them is longer than the last."""

    def texts(count: int, seed: int, stretch: int = 50) -> dict[str, str]:
        random = np.random.default_rng(seed)
        lengths = random.integers(0, 12, count) * (1 + np.arange(count) // stretch) ** 2
        words: Sequence[str] = [str(number) for number in range(80)]
        shares = 1 / np.arange(1, 81)
        return {
            f"d{number:05d}": " ".join(random.choice(words, length, p=shares / shares.sum()))
            for number, length in enumerate(lengths.tolist())
        }

    return texts
