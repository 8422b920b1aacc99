"""Who is let in, by hand."""

import time

import pytest

from tercet.service.exceptions import DeadlineExceededError, OverloadedError
from tercet.service.load.admission import ANY_WAIT, Admission
from tercet.service.load.deadlines import NO_DEADLINE, Deadline


def within(seconds: float) -> Deadline:
    return Deadline(time.monotonic() + seconds)


def test_the_limit_itself_is_let_in_and_more_is_not() -> None:
    admission = Admission(4)  # half of it may be predicted
    admission.require(2, NO_DEADLINE)
    with pytest.raises(
        OverloadedError, match=r"wait 5\.5 s; 2\.0 s is this server's limit.*again in 4 s"
    ) as told:
        admission.require(5.5, NO_DEADLINE)
    assert told.value.retry_after_seconds == pytest.approx(3.5)  # then the prediction is 2 s
    ANY_WAIT.require(1e9, NO_DEADLINE)


def test_a_shorter_deadline_is_the_limit() -> None:
    admission = Admission(400)
    admission.require(80, within(100))
    with pytest.raises(OverloadedError, match="X-Request-Timeout") as told:
        admission.require(300, within(100))
    assert told.value.retry_after_seconds == pytest.approx(200, abs=20)
    assert told.value.reason == "wait"


def test_past_its_deadline_nothing_is_let_in() -> None:
    with pytest.raises(DeadlineExceededError) as told:
        Admission(2).require(0, within(0))
    assert told.value.reason == "deadline"
    assert NO_DEADLINE.remaining_seconds > 1e9
    assert within(0).remaining_seconds == 0
