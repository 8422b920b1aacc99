"""Headings' names, and what lies below them."""

from tercet.ingest.passages.outline import Heading, Outline, Slugs


def test_slugs_are_githubs() -> None:
    slugs = Slugs()
    titles = [
        "Set up: `make`",
        "Set up make",
        "Set up make",
        "set-up-make-1",
        "안녕 세계!",
        "C++ & C#",
        "…",
        "a_b  c",
    ]
    expected = [
        "set-up-make", "set-up-make-1", "set-up-make-2", "set-up-make-1-1", "안녕-세계", "c--c", "", "a_b--c"
    ]  # fmt: skip
    assert [slugs.of(title) for title in titles] == expected


def heading(start: int, level: int) -> Heading:
    return Heading(start, start + 2, level, f"h{start}", f"h{start}", f"h{start}")


def test_sections_know_the_headings_above_them() -> None:
    outline = Outline((heading(5, 2), heading(10, 3), heading(20, 3), heading(30, 1), heading(40, 4)))
    found = [(one.start, one.end, [each.title for each in one.path]) for one in outline.sections(50)]
    assert found == [
        (0, 5, []),
        (7, 10, ["h5"]),
        (12, 20, ["h5", "h10"]),
        (22, 30, ["h5", "h20"]),
        (32, 40, ["h30"]),
        (42, 50, ["h30", "h40"]),
    ]


def test_one_heading_of_level_1_before_all_others_is_the_title() -> None:
    for levels, title in [((1, 2, 2), "h0"), ((1, 2, 1), None), ((2, 1), None), ((2, 2), None), ((), None)]:
        headings = tuple(heading(10 * place, level) for place, level in enumerate(levels))
        assert Outline(headings).title == title, levels


def test_pages_are_counted_from_one() -> None:
    outline = Outline(pages=(0, 10, 10, 30))
    assert [outline.page(place) for place in (0, 9, 10, 29, 30, 99)] == [1, 1, 3, 3, 4, 4]
