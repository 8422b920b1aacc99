"""The same operations on collections of this program and on a server's: one set of expectations for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tercet_client

import tercet
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server
from tests.tiny.cross_encoders import write_reranker

TEA, RAIL, BREAD = (
    {"id": "tea", "text": "green tea is brewed at eighty degrees", "metadata": {"year": 2024}},
    {"id": "rail", "text": "a history of rail in the north", "metadata": {"year": 2010}},
    {"id": "bread", "text": "bread rises by wild yeast", "title": "Bread", "metadata": {"year": 2026}},
)
NOTES = [TEA, RAIL, BREAD]
SETTINGS: dict[str, Any] = {"batch_tokens": 64, "queue_tokens": 4096, "max_wait_seconds": 60}

Open = Callable[[], AbstractContextManager[Any]]


class Over:
    """One way to reach a data root."""

    def __init__(self, open: Open, errors: Any) -> None:
        """open: gives what has its collections; errors: the module of its errors."""
        self.open = open
        self.errors = errors


class _Served:
    """A client of a server that runs as long as the client is open."""

    def __init__(self, data: Path, encoder: Encoder) -> None:
        self._server = real_server(create_app(Settings(data=data, **SETTINGS), encoder))

    def __enter__(self) -> tercet_client.Client:
        self._client = tercet_client.Client(self._server.__enter__())
        return self._client

    def __exit__(self, *raised: Any) -> None:
        self._client.close()
        self._server.__exit__(None, None, None)


@pytest.fixture(params=["embedded", "http"])
def over(request: pytest.FixtureRequest, tmp_path: Path, tiny: Encoder) -> Over:
    data = tmp_path / "data"
    if request.param == "http":
        return Over(partial(_Served, data, tiny), tercet_client)
    return Over(partial(tercet.open, data, encoder=tercet.Encoder(tiny), **SETTINGS), tercet)


@pytest.fixture
def store(over: Over) -> Iterator[Any]:
    with over.open() as store:
        yield store


@pytest.fixture
def notes(store: Any) -> Any:
    """A collection with three documents."""
    notes = store.collection("notes", create=True, fields={"year": "integer"})
    assert notes.put(NOTES).upserted == 3
    return notes


def test_what_was_put_is_got_and_counted(notes: Any) -> None:
    found = notes.get(["tea", "gone", "bread"])
    assert [each.id for each in found] == ["tea", "bread"]
    assert found.missing == ["gone"]
    assert (found[1].title, found[1].text, found[1].metadata) == ("Bread", BREAD["text"], {"year": 2026})
    assert notes.count() == 3
    assert notes.count(filter={"gte": {"year": 2020}}) == 2
    assert [each.id for each in notes.documents(page=2)] == ["bread", "rail", "tea"]
    assert [each.id for each in notes.documents(order_by="year", descending=True)] == ["bread", "tea", "rail"]
    assert notes.describe()["documents"] == 3


def test_a_position_grows_with_each_write(notes: Any) -> None:
    first = notes.put([TEA])
    assert (first.upserted, first.position, first.truncated) == (1, 2, 0)
    assert first.usage["tokens"] > 0
    assert notes.count(min_position=first.position) == 3


def test_a_repeat_under_a_key_changes_nothing(notes: Any) -> None:
    assert notes.put([TEA], idempotency_key="k") == notes.put([TEA], idempotency_key="k")


def test_a_partition_is_alone(store: Any, over: Over) -> None:
    notes = store.collection("tenants", create=True, fields={"year": "integer"}, partitioned=True)
    notes.put([{**note, "partition": f"t{number % 2}"} for number, note in enumerate(NOTES)])
    assert [(hit.id, hit.partition) for hit in notes.search("rail", partition="t1")] == [("rail", "t1")]
    assert notes.get(["tea"])[0].partition == "t0"
    assert notes.get(["tea", "rail"], partition="t1").missing == ["tea"]
    assert notes.delete(ids=["tea"], partition="t1").deleted == 0
    assert notes.update(ids=["tea", "rail"], partition="t1", metadata={"year": 3}).updated == 1
    assert [each.id for each in notes.documents(partition="t0")] == ["bread", "tea"]
    assert notes.count(partition="t0", filter={"gte": {"year": 2025}}) == 1
    assert notes.update(partition="t0", metadata={"year": 1}).updated == 2
    with pytest.raises(over.errors.ConflictError) as raised:
        notes.put([{**TEA, "partition": "t1"}])
    assert raised.value.code == "partition_conflict"
    assert notes.delete(partition="t0").deleted == 2
    again = store.collection("tenants", create=True, fields={"year": "integer"}, partitioned=True)
    assert again.describe()["documents"] == 1


def test_a_partition_may_be_searched_in_any_collection(store: Any) -> None:
    notes = store.collection("mixed", create=True)
    notes.put([TEA])
    notes.put([{**note, "partition": "t1"} for note in NOTES if note is not TEA])
    assert {hit.partition for hit in notes.search("rail", partition="t1")} == {"t1"}
    assert notes.count(partition="t1") == 2
    notes.put([{**TEA, "partition": "t1"}])
    assert notes.count(partition="t1") == 3


def test_metadata_is_replaced_or_merged(notes: Any) -> None:
    assert notes.update(ids=["tea", "gone"], metadata={"kind": "drink"}, merge=True).updated == 1
    assert notes.get(["tea"])[0].metadata == {"year": 2024, "kind": "drink"}
    assert notes.update(filter={"gte": {"year": 2020}}, metadata={"year": 1999}).updated == 2
    assert notes.get(["tea"])[0].metadata == {"year": 1999}


def test_documents_are_deleted_by_ids_and_by_a_filter(notes: Any) -> None:
    assert notes.delete(ids=["tea", "gone"]).deleted == 1
    assert notes.delete(filter={"lt": {"year": 2020}}).deleted == 1
    assert [each.id for each in notes.documents()] == ["bread"]


def test_hits_have_the_exact_sum_of_three_scores(notes: Any) -> None:
    found = notes.search(TEA["text"], top_k=2)
    best = found.hits[0]
    assert (len(found), best.id, best.text, best.metadata) == (2, "tea", TEA["text"], {"year": 2024})
    scores = best.scores
    assert best.score == pytest.approx(scores.dense + scores.sparse + scores.colbert, abs=1e-9)
    assert found.weights["dense"] == found.weights["colbert"] == 1
    assert found.snapshot


def test_searches_take_filters_weights_candidates_and_explanations(notes: Any) -> None:
    found = notes.search(
        "bread rises",
        filter={"gte": {"year": 2020}},
        weights={"dense": 1, "sparse": 0, "colbert": 0},
        candidates={"dense": 50, "sparse": 10},
        explain=True,
    )
    assert {hit.id for hit in found} == {"bread", "tea"}
    assert all(hit.score == hit.scores.dense and hit.explanation for hit in found)
    assert (found.candidates["dense"], found.candidates["sparse"]) == (50, 10)
    assert [hit.id for hit in notes.search({"id": "tea"}, top_k=5)].count("tea") == 0
    many = notes.search_many(["green tea", "a history of rail"], top_k=1)
    assert [each.hits[0].id for each in many] == ["tea", "rail"]


def test_collections_are_listed_and_deleted(store: Any, notes: Any) -> None:
    store.collection("more", create=True, bm25=True)
    assert [each["name"] for each in store.collections()] == ["more", "notes"]
    store.put_alias("latest", "notes")
    assert store.collection("latest").count() == 3
    store.delete_collection("more")
    assert [each["name"] for each in store.collections()] == ["notes"]
    assert store.statistics("notes")["documents"] == 3


def test_an_existing_collection_is_opened_again(over: Over, store: Any, notes: Any) -> None:
    assert store.collection("notes", create=True, fields={"year": "integer"}).count() == 3
    with pytest.raises(over.errors.ConflictError, match="fixed at creation"):
        store.collection("notes", create=True, fields={"year": "keyword"})


# What is refused → the class of its error, status, type, code and field.
REFUSED: dict[str, tuple[Callable[[Any, Any], Any], tuple[str, int, str, str, str | None]]] = {
    "missing collection": (
        lambda store, notes: store.collection("none"),
        ("NotFoundError", 404, "not_found", "collection_not_found", None),
    ),
    "bad name": (
        lambda store, notes: store.collection("Bad Name", create=True),
        ("ApiError", 422, "invalid_value", "invalid_value", "name"),
    ),
    "created twice": (
        lambda store, notes: store.create_collection("notes"),
        ("ConflictError", 409, "conflict", "collection_exists", None),
    ),
    "bad id": (
        lambda store, notes: notes.put([{"id": "", "text": "x"}]),
        ("ApiError", 422, "invalid_value", "invalid_value", "documents.0.id"),
    ),
    "wrong type": (
        lambda store, notes: notes.put([{"id": "a", "text": "x", "metadata": {"year": "soon"}}]),
        ("ApiError", 422, "invalid_value", "invalid_document", "documents.0.metadata.year"),
    ),
    "wrong filter field": (
        lambda store, notes: notes.search("tea", filter={"eq": {"colour": "green"}}),
        ("ApiError", 422, "invalid_value", "invalid_filter", "filter"),
    ),
    "filter of a count": (
        lambda store, notes: notes.count({"eq": {"colour": "green"}}),
        ("ApiError", 422, "invalid_value", "invalid_filter", "filter"),
    ),
    "unknown option": (
        lambda store, notes: notes.search("tea", topk=3),
        ("ApiError", 422, "invalid_value", "unknown_field", "topk"),
    ),
    "missing document": (
        lambda store, notes: store.document("notes", "gone"),
        ("NotFoundError", 404, "not_found", "document_not_found", None),
    ),
    "changed meanwhile": (
        lambda store, notes: (notes.put([TEA]), notes.put([TEA], if_position=0)),
        ("ConflictError", 409, "conflict", "document_changed", None),
    ),
    "neither ids nor filter": (
        lambda store, notes: notes.delete(),
        ("ApiError", 422, "invalid_value", "invalid_value", "ids"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_have_the_same_class_and_code(over: Over, store: Any, notes: Any, what: str) -> None:
    ask, expected = REFUSED[what]
    with pytest.raises(over.errors.ApiError) as raised:
        ask(store, notes)
    error = raised.value
    assert (type(error).__name__, error.status, error.type, error.code, error.param) == expected
    assert notes.count() == 3


def test_what_was_written_is_there_when_it_is_opened_again(over: Over) -> None:
    with over.open() as store:
        store.collection("notes", create=True).put(NOTES)
    with over.open() as store:
        notes = store.collection("notes")
        assert notes.count() == 3
        assert notes.search(RAIL["text"], top_k=1).hits[0].id == "rail"


def test_a_second_writer_is_refused(store: Any, tmp_path: Path, tiny: Encoder) -> None:
    with pytest.raises(tercet.ConflictError, match="another server uses the data root") as raised:
        tercet.open(tmp_path / "data", encoder=tercet.Encoder(tiny))
    assert (raised.value.status, raised.value.code) == (409, "data_root_in_use")


def test_answers_of_both_are_equal(tmp_path: Path, tiny: Encoder) -> None:
    def answers(store: Any) -> list[Any]:
        notes = store.collection("notes", create=True, fields={"year": "integer"}, bm25=True)
        notes.put(NOTES)
        found = store.search("notes", "green tea in the north", weights={"bm25": 0.5}, explain=True)
        return [
            {**found, "took_ms": None},
            store.document("notes", "tea", representations=True),
            store.rerank("tea", ["green tea", "rail"]),
            {**store.collection("notes").description},
        ]

    with tercet.open(tmp_path / "one", encoder=tercet.Encoder(tiny), **SETTINGS) as store:
        embedded = answers(store)
    with _Served(tmp_path / "other", tiny) as client:
        assert answers(client) == embedded


def test_a_closed_store_says_so(tmp_path: Path, tiny: Encoder) -> None:
    store = tercet.open(tmp_path / "data", encoder=tercet.Encoder(tiny))
    store.close()
    store.close()
    with pytest.raises(tercet.TercetError, match="the store is closed"):
        store.collections()


def test_a_re_ranker_puts_hits_in_order(over: Over, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="re-rankers run in torch: install tercet[torch]")
    write_reranker(tmp_path / "data" / "rerankers" / "judge")
    with over.open() as store:
        notes = store.collection("notes", create=True)
        notes.put(NOTES)
        logits = [hit.scores.reranker for hit in notes.search("green tea", reranker="judge")]
        assert logits == sorted(logits, reverse=True)
        assert len(set(logits)) == 3
        assert all(hit.scores.reranker is None for hit in notes.search("green tea"))
        with pytest.raises(over.errors.NotFoundError, match="there are judge"):
            notes.search("green tea", reranker="jury")
