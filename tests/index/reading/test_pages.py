"""Where a page of documents begins."""

from tercet.index.reading.pages import starts_behind


def test_a_page_begins_behind_an_id_and_before_all_that_are_longer() -> None:
    (start,) = starts_behind(b"a", None, 1, None)
    assert b"a" < start <= b"a\0" < b"a b" < b"aa"


def test_of_equal_ids_a_later_collection_follows() -> None:
    assert starts_behind(b"a", "b", 3, ["a", "b", "c"]) == [b"a\0", b"a\0", b"a"]
    assert starts_behind(None, None, 2, None) == [b"", b""]
