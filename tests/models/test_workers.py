"""Threads of an encoder."""

import os
import sys
import threading

import pytest

from tercet.models.workers import Workers


def test_results_come_in_the_order_of_their_items() -> None:
    assert list(Workers(3, "part").map(lambda number: number * number, range(20))) == [
        number * number for number in range(20)
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
@pytest.mark.parametrize("niceness", [0, 5])
def test_they_leave_the_processor_to_the_main_thread_where_a_server_asks(
    niceness: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to the main thread, whoever starts them."""
    monkeypatch.setattr(Workers, "niceness", niceness)
    own = os.getpriority(os.PRIO_PROCESS, os.getpid())
    found: list[int] = []

    def priority(_: int) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def start() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(19, own + 2))
        found.extend(Workers(2, "part").map(priority, range(2)))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert found == [min(19, own + (niceness or 2))] * 2  # a thread begins as who starts it
    assert os.getpriority(os.PRIO_PROCESS, os.getpid()) == own
