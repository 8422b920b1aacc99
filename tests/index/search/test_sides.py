"""Collections of encoders that lack sides: those they have score as in a whole collection."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.documents.filters import In
from tercet.index.errors import InvalidDocumentError, InvalidQueryError
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify
from tercet.index.writer import SegmentLimits
from tercet.models.representations import OUTPUTS, Output, Representations

SOME_SIDES: list[tuple[Output, ...]] = [
    ("dense",),
    ("sparse",),
    ("colbert",),
    ("dense", "sparse"),
    ("dense", "colbert"),
    ("sparse", "colbert"),
]
COUNT = 60


def without(whole: CollectionSettings, sides: tuple[Output, ...]) -> CollectionSettings:
    """The settings of an encoder that has these sides alone."""
    sizes = dict(zip(OUTPUTS, ("dense_dimension", "vocabulary_size", "colbert_dimension"), strict=True))
    lacking: dict[str, Any] = {sizes[side]: 0 for side in OUTPUTS if side not in sides}
    codec = {} if "colbert" in sides else {"token_codec": "none"}
    return replace(whole, name="some", **lacking, **codec)


@pytest.fixture(params=SOME_SIDES, ids="+".join)
def sides(request: pytest.FixtureRequest) -> tuple[Output, ...]:
    return request.param  # type: ignore[no-any-return]  # pytest leaves it untyped


@pytest.fixture
def encoded(random_texts: Any) -> Representations:
    return random_texts(COUNT, 5)


def documents() -> list[Document]:
    return [Document(f"{row:02}", f"text {row}", None, {"year": row % 3}) for row in range(COUNT)]


@pytest.mark.slow
def test_scores_are_those_of_a_whole_collection(
    root: Path, make_settings: Any, encoded: Representations, random_texts: Any, sides: tuple[Output, ...]
) -> None:
    """Over all documents; in one segment and in seven, published and written live, with a filter."""
    assert encoded.colbert is not None
    whole = make_settings(encoded, "whole", fields={"year": "integer"}, token_codec="float16")
    weights = Weights(1.0, 0.5, 2.0).of(sides)
    queries = [random_texts(1, seed) for seed in range(100, 110)]
    full = Collection.create(root, "whole", whole)
    with full.writer() as writer:
        writer.add(documents(), encoded)
        writer.publish()
    expected = []
    for query in queries:
        found = full.snapshot().search(query, top_k=COUNT, weights=weights)
        expected.append({hit.document.id: hit.score for hit in found.hits})

    for segment in (COUNT, 9):
        settings = replace(without(whole, sides), name=f"some-{segment}")
        some = Collection.create(root, settings.name, settings)
        with some.writer(SegmentLimits(documents=segment)) as writer:
            writer.add(documents(), encoded.keep(sides))
            writer.publish()
        assert verify(root, settings.name) == []
        live = Collection.create(root, f"live-{segment}", replace(settings, name=f"live-{segment}"))
        with LiveCollection(live) as written:
            written.put(documents(), encoded.keep(sides))
            for snapshot in (some.snapshot(), written.snapshot()):
                for query, scores in zip(queries, expected, strict=True):
                    kept = query.keep(sides)
                    hits = snapshot.search(kept, top_k=COUNT, weights=weights).hits
                    assert {hit.document.id: hit.score for hit in hits}.items() <= scores.items()
                    if "dense" in sides:
                        assert len(hits) == COUNT
                    elif sides == ("colbert",):
                        said = bool(query.tokens[0] > 1)  # else it has no token vectors
                        assert len(hits) == said * np.count_nonzero(np.diff(encoded.colbert.offsets))
                    filtered = snapshot.search(
                        kept, top_k=COUNT, weights=weights, filter=In("year", (1,))
                    ).hits
                    allowed = [hit.document.id for hit in hits if int(hit.document.id) % 3 == 1]
                    assert [hit.document.id for hit in filtered] == allowed


def test_token_vectors_alone_find_all_documents_whatever_the_limits(
    root: Path, make_settings: Any, encoded: Representations, random_texts: Any
) -> None:
    assert encoded.colbert is not None
    settings = without(make_settings(encoded, "whole"), ("colbert",))
    collection = Collection.create(root, "some", settings)
    with collection.writer(SegmentLimits(documents=9)) as writer:
        writer.add(documents(), encoded.keep(["colbert"]))
        writer.publish()
    query = random_texts(1, 7).keep(["colbert"])
    found = collection.snapshot().search(
        query, top_k=COUNT, weights=Weights(0, 0, 1), candidates=CandidateLimits(1, 1)
    )
    assert len(found.hits) == np.count_nonzero(np.diff(encoded.colbert.offsets))
    scores = [hit.score for hit in found.hits]
    assert np.all(np.diff(scores) <= 0)


def test_what_is_not_there_is_refused(
    root: Path, make_settings: Any, encoded: Representations, random_texts: Any
) -> None:
    settings = without(make_settings(encoded, "whole"), ("dense",))
    collection = Collection.create(root, "some", settings)
    with collection.writer() as writer:
        with pytest.raises(InvalidDocumentError, match="outside the vocabulary of 0"):
            writer.add(documents(), encoded)
        writer.add(documents(), encoded.keep(["dense"]))
        writer.publish()
    query = random_texts(1, 7).keep(["dense"])
    with pytest.raises(
        InvalidQueryError, match=r"weight of sparse is 0\.5, but encoder 'tiny' has no such side"
    ):
        collection.snapshot().search(query, weights=Weights(1, 0.5, 0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dense_dimension": 0, "vocabulary_size": 0, "colbert_dimension": 0}, "one of these sides at least"),
        (
            {"dense_dimension": 0, "dense_kind": "hnsw"},
            'dense_kind is "hnsw", but the encoder has no dense side',
        ),
        ({"vocabulary_size": 0, "lexical": "idf"}, 'lexical is "idf", but the encoder has no lexical side'),
    ],
)
def test_settings_that_cannot_be(
    make_settings: Any, encoded: Representations, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replace(make_settings(encoded, "whole", token_codec="none"), **changes)
