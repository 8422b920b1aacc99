"""Headings of reStructuredText."""

from tercet.ingest.texts.rst import rst_headings

TEXT = """.. _tea:

=============
 Tea & water
=============

Set up: ``make``
================

Run it::

    not a heading
    =============

A list of words
and a second line
-----------------

Too long a title for its row
----

``drink()``
-----------

=====  =====
a      b
=====  =====

Set up: ``make``
================
"""


def test_headings_have_levels_by_their_marks_and_anchors_as_docutils_makes_them() -> None:
    found = rst_headings(TEXT)
    assert [(one.level, one.title, one.anchor) for one in found] == [
        (1, "Tea & water", "tea-water"),
        (2, "Set up: make", "set-up-make"),
        (3, "drink()", "drink"),
        (2, "Set up: make", "set-up-make-1"),
    ]
    assert [TEXT[one.end :].split("\n")[1] for one in found[:2]] == ["Set up: ``make``", "Run it::"]
    assert TEXT[found[0].start :].startswith("=====")
    assert rst_headings("") == rst_headings("Hot\n\n===\n") == ()
