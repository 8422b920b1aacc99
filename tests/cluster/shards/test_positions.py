"""Positions over shards."""

import pytest

from tercet.cluster.shards.positions import Positions


def test_positions_are_written_and_read() -> None:
    positions = Positions.parse("3.17.2", 3)
    assert positions.numbers == (3, 17, 2)
    assert str(positions) == "3.17.2"
    assert Positions.parse("4", 1).numbers == (4,)
    assert str(Positions.alone(1, 7, 3)) == "0.7.0"
    assert str(Positions.none(2)) == "0.0"


def test_the_later_of_each_shard_counts() -> None:
    one, other = Positions((3, 1)), Positions((2, 5))
    assert one.merged(other) == Positions((3, 5))


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("", "no position"),
        ("3.", "no position"),
        (".3", "no position"),
        ("3..2", "no position"),
        ("-1.2", "no position"),
        ("１.2", "no position"),
        ("1.2\n", "no position"),
        ("3", "of 1 shard, and now there are 2"),
        ("1.2.3", "of 3 shards, and now there are 2"),
        (f"{2**63}.1", "63 bits"),
        ("1." * 1000 + "1", "1001 shards"),
    ],
)
def test_what_is_no_position_is_refused(text: str, about: str) -> None:
    with pytest.raises(ValueError, match=about):
        Positions.parse(text, 2)


def test_one_shard_is_no_shards() -> None:
    with pytest.raises(ValueError, match="of 2 shards, and now there is 1;"):
        Positions.parse("1.2", 1)
