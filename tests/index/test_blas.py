"""Searches multiply matrices on their own thread, and leave BLAS as they found it."""

import threading
from collections.abc import Iterator
from typing import Any

import numba.np.arraymath  # noqa: F401  # loads SciPy's OpenBLAS now instead of within the first search
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from index.blas import one_blas_thread
from index.search import late_interaction


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


def test_a_search_and_a_score_use_one_thread(
    build: Any, three: Any, three_query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[int]] = []
    maxsim = late_interaction.packed_maxsim

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(blas_threads())
        return maxsim(*arguments, **options)

    monkeypatch.setattr(late_interaction, "packed_maxsim", watched)
    snapshot = build(three).snapshot()
    snapshot.search(three_query)
    snapshot.score(three_query, snapshot.retrieve(three_query))
    assert len(seen) == 2
    assert all(threads == {1} for threads in seen)
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
