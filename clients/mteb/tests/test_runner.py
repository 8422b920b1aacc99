"""mteb's runner, on a local task: nothing is fetched."""

from __future__ import annotations

from typing import Any

import mteb
import numpy as np
import pytest
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.mocks.mock_tasks import retrieval as mocks
from mteb.models import EncoderProtocol, SearchProtocol
from tercet_client import ApiError, Client
from tercet_mteb import TercetEncoder, TercetSearch

CORPUS = {
    "tea": ("Tea", "Green leaves are brewed with hot water."),
    "rail": ("Railways", "A steam train crosses the bridge."),
    "bees": ("", "Bees dance to tell where flowers are."),
    "bread": ("Bread", "Yeast makes the dough rise."),
}
QUERIES = {
    "q1": ("how is green tea brewed?", "tea"),
    "q2": ("which train crosses a bridge?", "rail"),
    "q3": ("why do bees dance?", "bees"),
    "q4": ("what makes dough rise?", "bread"),
}


TO_RANK = {"q1": ["rail", "bees"], "q2": ["bees", "rail", "tea"], "q3": ["tea", "bees"], "q4": ["bread"]}


class LocalTask(AbsTaskRetrieval):
    """Four documents, four queries, one answer each."""

    metadata = TaskMetadata(
        name="LocalTask",
        description="Four documents, four queries.",
        reference=None,
        dataset={"path": "local", "revision": "1"},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
        date=("2026-01-01", "2026-01-01"),
        domains=["Written"],
        task_subtypes=[],
        license="apache-2.0",
        annotations_creators="human-annotated",
        dialect=[],
        sample_creation="created",
        bibtex_citation="",
    )
    top_ranked: dict[str, list[str]] | None = None

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        corpus = [{"id": id, "title": title, "text": text} for id, (title, text) in CORPUS.items()]
        queries = [{"id": id, "text": text} for id, (text, _) in QUERIES.items()]
        split = RetrievalSplitData(
            corpus=Dataset.from_list(corpus),
            queries=Dataset.from_list(queries),
            relevant_docs={id: {answer: 1} for id, (_, answer) in QUERIES.items()},
            top_ranked=self.top_ranked,
        )
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True


class RerankedTask(LocalTask):
    """The answer is not among what is to be ranked for q1, and is for the others."""

    top_ranked = TO_RANK


@pytest.fixture
def encoder(url: str, key: str | None) -> TercetEncoder:
    return TercetEncoder(url, key=key, batch_size=3)


def names(client: Client) -> set[str]:
    return {one["name"] for one in client.collections()}


def arguments(task: AbsTaskRetrieval) -> dict[str, Any]:
    """What mteb gives beside corpus and queries."""
    return {"task_metadata": task.metadata, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {}}


def score(model: Any, task: AbsTaskRetrieval) -> float:
    return float(mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results[0].get_score())


def test_protocols(encoder: TercetEncoder, url: str, key: str | None) -> None:
    assert isinstance(encoder, EncoderProtocol)
    assert not isinstance(encoder, SearchProtocol)
    assert isinstance(TercetSearch(url, key=key), SearchProtocol)


def test_the_encoder_is_evaluated(encoder: TercetEncoder, client: Client) -> None:
    assert score(encoder, LocalTask()) == 1.0
    result = mteb.evaluate(encoder, mteb_mocks(), cache=None, show_progress_bar=False)
    assert len(result.task_results) == len(mteb_mocks())
    encoder_info = client.info()["encoder"]
    assert result.model_name == f"tercet/{encoder_info['name']}"
    assert result.model_revision == encoder_info["fingerprint"]


def mteb_mocks() -> list[Any]:
    from mteb.mocks.mock_tasks import MockRerankingTask, MockSTSTask

    return [mocks.MockRetrievalTask(), MockRerankingTask(), MockSTSTask()]


def test_search_is_evaluated(url: str, key: str | None, client: Client) -> None:
    before = names(client)
    with TercetSearch(url, key=key, settings={"bm25": True}) as search:
        assert score(search, LocalTask()) == 1.0
        [made] = names(client) - before
        assert client.collection(made).description["bm25"]
        assert client.document(made, "tea")["title"] == "Tea"
        assert client.document(made, "bees")["title"] is None
        assert score(search, mocks.MockRetrievalTask()) > 0
        assert len(names(client) - before) == 1
    assert names(client) == before


def test_re_ranking_scores_what_is_named_as_a_search_does(url: str, key: str | None, client: Client) -> None:
    before = names(client)
    with TercetSearch(url, key=key) as search:
        assert score(search, RerankedTask()) == 0.75
        [made] = names(client) - before
        task = RerankedTask()
        task.load_data()
        given = arguments(task)
        queries = task.dataset["default"]["test"]["queries"]
        found = search.search(queries, top_k=2, top_ranked=task.top_ranked, **given)
        assert {id: set(scores) for id, scores in found.items()} == {
            "q1": {"rail", "bees"},
            "q2": {"rail", "bees"} if "bees" in found["q2"] else {"rail", "tea"},
            "q3": {"tea", "bees"},
            "q4": {"bread"},
        }
        searched = {hit["id"]: hit["score"] for hit in client.search(made, QUERIES["q2"][0])["hits"]}
        assert found["q2"]["rail"] == pytest.approx(searched["rail"], abs=0.02)  # stored vectors are rounded


def test_weights_count(url: str, key: str | None, client: Client) -> None:
    before = names(client)
    with TercetSearch(url, key=key, weights={"dense": 1, "sparse": 0, "colbert": 0}) as search:
        score(search, LocalTask())
        [made] = names(client) - before
        task = LocalTask()
        task.load_data()
        queries = task.dataset["default"]["test"]["queries"]
        given = arguments(task)
        found = search.search(queries, top_k=1, **given)
        hit = client.search(made, QUERIES["q1"][0], top_k=1)["hits"][0]
        assert found["q1"] == {"tea": pytest.approx(hit["scores"]["dense"], abs=1e-6)}
        assert search.mteb_model_meta.experiment_kwargs == {
            "weights": {"dense": 1, "sparse": 0, "colbert": 0}
        }


def test_similarities(encoder: TercetEncoder) -> None:
    rows = np.array([[1.0, 0.0], [0.6, 0.8]], np.float32)
    assert np.allclose(encoder.similarity(rows, rows), [[1, 0.6], [0.6, 1]])
    assert np.allclose(encoder.similarity(rows[0], rows[1]), [[0.6]])
    assert np.allclose(encoder.similarity_pairwise(rows, rows[::-1]), [0.6, 0.6])


def test_refusals(url: str, key: str | None, client: Client) -> None:
    before = names(client)
    search = TercetSearch(url, key=key, settings={"bm25_language": "klingon"})
    with pytest.raises(ApiError, match="bm25_language"):
        score(search, LocalTask())
    plain = TercetSearch(url, key=key)
    task = LocalTask()
    task.load_data()
    queries = task.dataset["default"]["test"]["queries"]
    given = arguments(task)
    with pytest.raises(ValueError, match="call index first"):
        plain.search(queries, top_k=1, **given)
    with plain:
        plain.index(task.dataset["default"]["test"]["corpus"], **given)
        with pytest.raises(ValueError, match="conversations"):
            plain.search(Dataset.from_list([{"id": "q", "text": ["a", "b"]}]), top_k=1, **given)
        asked = Dataset.from_list([{"id": "q", "text": "tea", "instruction": "Find a train."}])
        [scores] = plain.search(asked, top_k=4, **given).values()
        whole = client.search(next(iter(names(client) - before)), "tea Find a train.")["hits"]
        assert scores == {hit["id"]: hit["score"] for hit in whole}
    search.close()
    assert names(client) == before
