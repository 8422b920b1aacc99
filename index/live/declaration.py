"""Declares fields of a live collection over what it holds, while documents are written and searched.

First every published segment gets a successor that has the new columns, too, and a manifest of these is
published; it says of each segment what fields it has, so that columns that nobody declared do no harm. Then
the state has the fields, writes are checked for them, and `fields.json` declares them. A second publication
lets readers of other processes notice. After a crash before `fields.json` nothing is declared, after it all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import UnforcedPublicationError
from tercet.index.live.committer import Committer
from tercet.index.live.flush import Flush
from tercet.index.live.state import LiveState
from tercet.index.publisher import Publisher
from tercet.index.segments.deletes import read_deletes
from tercet.index.segments.later_columns import check_columns, with_columns, with_later_columns
from tercet.index.segments.segment import Segment

LATER = "declare fields after it"  # as its segments would not have the new columns


class Declaration:
    """The declarations of one live collection, one after the other."""

    def __init__(self, publisher: Publisher, committer: Committer, flush: Flush) -> None:
        self._publisher = publisher
        self._committer = committer
        self._flush = flush

    def check(self, fields: Mapping[str, FieldType]) -> None:
        """Raises what a declaration of these fields would at present, and changes nothing. Flushes and merges
        wait meanwhile.
        """
        publisher, committer = self._publisher, self._committer
        with publisher.lock:
            new = publisher.settings.with_fields(fields)
            if new == publisher.settings:
                return
            committer.require_open()
            state = committer.state
            state.require_no_build(LATER)
            later = {name: new.fields[name] for name in fields if name not in publisher.settings.fields}
            for segment in (*state.published, *state.memory):
                check_columns(segment, later)

    def run(self, fields: Mapping[str, FieldType]) -> CollectionSettings:
        """Declares fields, and returns the settings with them; those that are declared already stay.

        Flushes and merges wait meanwhile, and writes where memory is full.
        Raises InvalidFieldError, InvalidNameError, InvalidDocumentError naming a document whose metadata has
        another type, CollectionBusyError while a build is under way, CollectionFencedError,
        DamagedIndexError, and what a flush raises; then nothing is declared.
        """
        publisher = self._publisher
        with publisher.lock:
            new = publisher.settings.with_fields(fields)
            if new == publisher.settings:
                return new
            self._committer.require_open()
            self._committer.state.require_no_build(LATER)
            self._flush.run_locked()
            self._declare(new)
            return new

    def _declare(self, new: CollectionSettings) -> None:
        publisher, former, state = self._publisher, self._publisher.settings, self._committer.state
        with publisher.naming(len(state.published)) as ids:
            # Of the same documents, in the same order, as flushes and merges wait.
            entries, layout = [], publisher.layout
            for entry, segment, id in zip(publisher.manifest.segments, state.published, ids, strict=True):
                made = with_later_columns(layout, entry, segment, former, layout, id, new)
                entries.append(publisher.marked(made, read_deletes(layout, entry)))
            publisher.settings = new
            try:
                opened = [publisher.open(entry) for entry in entries]
                publisher.publish(entries, publisher.manifest.ledger_position)
                published = publisher.manifest.name
                self._committer.change(lambda now: _declared(now, new, opened, published))
                new.write_later_fields(publisher.layout.settings)
            except BaseException:
                publisher.settings, published = former, publisher.manifest.name
                self._committer.change(lambda now: replace(now, settings=former, name=published))
                raise
            with suppress(OSError, UnforcedPublicationError):  # it is declared; the next publication tells
                publisher.publish(entries, publisher.manifest.ledger_position)
            published = publisher.manifest.name
            self._committer.change(lambda now: replace(now, name=published))
        publisher.remove_former()


def _declared(state: LiveState, new: CollectionSettings, opened: Sequence[Segment], name: str) -> LiveState:
    """With the segments that have the new columns, and these made of what memory holds.

    Raises InvalidDocumentError for a document that was written meanwhile, CollectionBusyError.
    """
    state.require_no_build(LATER)
    published = tuple(
        after.without(np.setdiff1d(after.rows_kept(), before.rows_kept()))
        for before, after in zip(state.published, opened, strict=True)
    )
    memory = tuple(
        Segment.in_memory([with_columns(segment.take(segment.rows_kept()), new.fields)], new)
        for segment in state.memory
    )
    return replace(state, settings=new, name=name, published=published, memory=memory)
