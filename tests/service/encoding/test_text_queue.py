"""Who is encoded next: short requests first, what has begun is finished, and nobody starves."""

from collections.abc import Sequence

import numpy as np
import pytest

from tercet.models.representations import OUTPUTS, TokenBatch, offsets_of
from tercet.service.encoding.text_queue import QueuedCall, TextQueue
from tercet.service.load.admission import Ticket

Batch = list[tuple[str, int]]  # call and tokens of each part


class Line:
    """A queue whose calls have names."""

    def __init__(self, batch_tokens: int) -> None:
        self.queue = TextQueue()
        self._budget = batch_tokens
        self._names: dict[QueuedCall, str] = {}

    def add(self, name: str, lengths: Sequence[int], ticket: Ticket | None = None) -> QueuedCall:
        tokens = TokenBatch(
            np.zeros(sum(lengths), np.int32), offsets_of(np.array(lengths)), np.zeros(len(lengths), np.bool_)
        )
        call = QueuedCall(tokens, OUTPUTS, None, ticket or Ticket())
        self._names[call] = name
        self.queue.add(call)
        return call

    def ahead(self, tokens: int, client: str = "") -> int:
        return self.queue.tokens_ahead(tokens, self._budget, client)

    def next(self) -> Batch:
        return [(self._names[part.call], part.tokens) for part in self.queue.next_batch(self._budget)]

    def rest(self) -> list[Batch]:
        batches = []
        while batch := self.next():
            batches.append(batch)
        return batches

    def ends(self) -> list[str]:
        """Calls in the order in which their last texts are encoded."""
        last = {name: number for number, batch in enumerate(self.rest()) for name, _ in batch}
        return sorted(last, key=last.__getitem__)


def test_equal_requests_end_one_after_the_other() -> None:
    line = Line(1000)
    names = [f"r{number:02}" for number in range(40)]
    for name in names:
        line.add(name, [100] * 32)
    assert line.ends() == names


def test_clients_take_turns_by_tokens() -> None:
    """Queries overtake; of the others the one that came late comes before the second of who was first."""
    line = Line(100)
    for number in range(3):
        line.add(f"large {number}", [50, 50], Ticket(client="large"))
    for number in range(6):
        line.add(f"small {number}", [40], Ticket(client="small"))
    line.add("late", [40, 40], Ticket(client="late"))
    assert line.ends() == [
        *("small 0", "small 1", "large 0", "small 2", "small 3", "late", "small 4", "small 5"),
        *("large 1", "large 2"),
    ]


def test_a_later_call_keeps_its_turn_when_nothing_waited_between() -> None:
    line, ticket = Line(100), Ticket(client="slices", later_tokens=200)
    line.add("before", [100] * 5, Ticket(client="slices"))
    line.add("first", [100], ticket)
    line.rest()
    for number in range(3):
        line.add(f"behind {number}", [100], Ticket(client="other"))
    ticket.later_tokens = 0
    line.add("later", [100], ticket)
    assert line.ends()[0] == "later"


def test_a_client_waits_for_as_much_of_each_other_as_it_has_itself() -> None:
    line = Line(100)
    for number in range(10):
        line.add(f"greedy {number}", [100], Ticket(client="greedy"))
    assert line.ahead(100, "greedy") == 1000
    assert line.ahead(100, "polite") == 100
    line.add("polite", [100], Ticket(client="polite"))
    assert line.ahead(100, "polite") == 100 + 200
    assert line.ahead(100, "greedy") == 1000 + 100


def test_a_query_overtakes_documents_and_waits_for_no_full_batch() -> None:
    line = Line(100)
    line.add("documents", [50] * 10)
    assert line.next() == [("documents", 100)]
    line.add("query", [7])
    line.add("other query", [5])
    assert line.next() == [("query", 7), ("other query", 5)]  # of like size: in order of arrival


def test_the_oldest_is_never_overtaken_twice_in_a_row() -> None:
    line = Line(100)
    line.add("documents", [50] * 10)
    batches = []
    for number in range(9):  # a query for every batch
        line.add(f"q{number}", [60])
        batches.append(line.next())
    with_documents = [any(name == "documents" for name, _ in batch) for batch in batches]
    assert with_documents == [False, True] * 4 + [False]


def test_short_requests_end_first_and_what_has_begun_is_finished() -> None:
    line = Line(100)
    line.add("long", [50] * 8)
    line.add("middle", [50] * 5)
    line.add("short", [50] * 2)
    assert line.next() == [("short", 100)]
    assert line.next() == [("long", 100)]  # in order of arrival, since it was overtaken
    line.add("new", [50])
    assert line.ends() == ["new", "long", "middle"]  # the long one had every other batch


def test_long_texts_come_before_short_ones_of_a_request_and_one_over_the_budget_alone() -> None:
    line = Line(100)
    line.add("a", [30, 250, 60, 20])
    assert line.rest() == [[("a", 250)], [("a", 90)], [("a", 20)]]


def test_later_calls_keep_the_place_of_the_first_and_count_with_it() -> None:
    line = Line(100)
    ticket = Ticket(later_tokens=300)
    line.add("large 1", [100], ticket)
    line.add("other", [90, 90])
    assert line.queue.tokens == 280
    assert line.ahead(10_000) == 580
    assert line.next() == [("other", 90)]  # fewer tokens than all of the large one
    assert line.next() == [("large 1", 100)]
    ticket.later_tokens = 200
    line.add("large 2", [100], ticket)
    assert line.next() == [("other", 90)]
    assert line.next() == [("large 2", 100)]


def test_what_is_answered_already_is_left_out() -> None:
    line = Line(100)
    departed = line.add("departed", [10])
    line.add("stays", [20])
    departed.answer.cancel()
    assert line.rest() == [[("stays", 20)]]
    assert len(line.queue) == 0


def test_tokens_ahead_by_hand() -> None:
    line = Line(100)
    assert line.ahead(5) == 0
    line.add("documents", [50] * 10)
    assert line.ahead(5) == 100  # others share its batch at most
    assert line.ahead(500) == 500
    line.add("query", [10])
    # A batch with the query may be followed by one in order of arrival.
    assert line.ahead(5) == line.ahead(20) == 2 * 10 + 100
    assert line.next() == [("query", 10)]
    assert line.ahead(5) == 200  # the next batch is the oldest's
    assert line.ahead(500) == 533  # 500 / (1 - 1/16): of 16 batches one has overtaken the oldest


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_tokens_ahead_is_about_what_comes_before_the_first_text(seed: int) -> None:
    """Random queues without later arrivals: right within half of it and three batches."""
    random = np.random.default_rng(seed)
    for _ in range(50):
        line = Line(100)
        for number in range(random.integers(0, 40)):
            line.add(f"r{number}", random.integers(1, 60, random.integers(1, 20)).tolist())
        for _ in range(random.integers(0, 3)):
            line.next()
        lengths = random.integers(1, 60, random.integers(1, 20)).tolist()
        predicted = line.ahead(sum(lengths))
        line.add("new", lengths)
        before = 0
        for batch in line.rest():
            if any(name == "new" for name, _ in batch):
                break
            before += sum(tokens for _, tokens in batch)
        assert abs(before - predicted) <= predicted / 2 + 300
