"""Searches multiply matrices on their own thread, and leave BLAS as they found it."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from tercet.index import scoring
from tercet.index.blas import one_blas_thread
from tercet.index.codebook import sign_codebook
from tercet.index.token_vectors.query import QueryTokens
from tercet.index.token_vectors.store import TokenVectorStore


def blas_threads() -> set[int]:
    """Threads of the OpenBLAS that NumPy brings, whichever thread asks."""
    found = ThreadpoolController().info()
    return {library["num_threads"] for library in found if library.get("threading_layer") == "pthreads"}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    if not blas_threads():
        pytest.skip("this NumPy has no OpenBLAS with a pool of its own")
    with threadpool_limits(2, user_api="blas"):
        yield


Watch = Callable[[Callable[..., Any]], Callable[..., Any]]


@pytest.fixture
def seen() -> list[set[int]]:
    """How many threads BLAS had at each call of what is watched."""
    return []


@pytest.fixture
def watched(seen: list[set[int]]) -> Watch:
    def watch(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            seen.append(blas_threads())
            return real(*arguments)

        return call

    return watch


def test_late_interaction_of_floats_uses_one_thread(
    build: Any, three: Any, three_query: Any, watched: Watch, seen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = scoring._matrix_maxsim_of_store
    monkeypatch.setattr(scoring, "_matrix_maxsim_of_store", watched(real))
    snapshot = build(three, token_codec="float16").snapshot()
    snapshot.search(three_query)
    snapshot.score(three_query, snapshot.retrieve(three_query))
    assert len(seen) == 2
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == {2}


def test_a_query_is_turned_on_one_thread(watched: Watch, seen: Any) -> None:
    codebook = sign_codebook(8)
    rotation = watched(lambda: codebook.rotation)
    read_late = type("ReadLate", (), {"rotation": property(lambda _: rotation())})()
    QueryTokens.of(np.eye(8, dtype=np.float32), "sign", read_late)
    assert seen == [{1}]
    assert blas_threads() == {2}


def test_an_explanation_uses_one_thread(
    build: Any, three: Any, three_query: Any, watched: Watch, seen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenVectorStore, "of", watched(TokenVectorStore.of))
    build(three).snapshot().explanations(three_query, ["b"])[0]
    assert seen == [{1}]
    assert blas_threads() == {2}


def test_the_last_of_several_threads_gives_back_what_the_first_found() -> None:
    entered, leave = threading.Barrier(2), threading.Event()

    def search() -> None:
        with one_blas_thread:
            entered.wait(10)
            leave.wait(10)

    other = threading.Thread(target=search)
    other.start()
    with one_blas_thread:
        entered.wait(10)
    assert blas_threads() == {1}  # the other is still inside
    leave.set()
    other.join()
    assert blas_threads() == {2}


def test_a_failing_search_gives_it_back() -> None:
    with pytest.raises(ValueError, match="wrong"), one_blas_thread:
        raise ValueError("wrong")
    assert blas_threads() == {2}
