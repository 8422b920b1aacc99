"""The partition of a document, such as its tenant: what a partitioned collection places its documents by.

It is the keyword field `partition`, of which each document of such a collection has one value, for good. So
filters, facets and copies know it as they know any field, and the documents of one partition share a bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tercet.index.candidates import Document
from tercet.index.documents.fields import Column, KeywordColumn, composed
from tercet.index.documents.filters import And, Filter, In, Or
from tercet.index.documents.metadata import PARTITION as PARTITION
from tercet.index.errors import InvalidDocumentError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.wording import shown

MAX_PARTITION_BYTES = 512


def partition_of(document: Document) -> str:
    """That of a document, in Unicode's form NFC. Raises InvalidDocumentError where its metadata have none of
    1 to 512 bytes of UTF-8.
    """
    value = document.metadata.get(PARTITION)
    composed_value = composed(value) if isinstance(value, str) else ""
    if not 1 <= len(composed_value.encode(errors="replace")) <= MAX_PARTITION_BYTES:
        raise InvalidDocumentError(
            f"document {document.id!r:.80}: partition is {shown(value, 40)}; a document of a partitioned "
            f"collection has one, a text of 1 to {MAX_PARTITION_BYTES} bytes",
            PARTITION,
        )
    return composed_value


def partition_record(document: Document) -> dict[str, str]:
    """A document's `partition` beside its metadata, where these have a text of this name."""
    value = document.metadata.get(PARTITION)
    return {PARTITION: value} if isinstance(value, str) else {}


def is_within(document: Document, partition: str | None) -> bool:
    """Whether a document is in a partition, where one is given."""
    return partition is None or is_same_partition(document.metadata.get(PARTITION), partition)


def is_same_partition(one: object, other: str) -> bool:
    """Whether a value of metadata is a partition, in whatever form of Unicode."""
    return isinstance(one, str) and composed(one) == composed(other)


def kept_partition(present: Mapping[str, Any], changed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Changed metadata with the partition that these have. Raises InvalidDocumentError for another one."""
    own = present[PARTITION]
    if not is_same_partition(changed.get(PARTITION, own), own):
        raise InvalidDocumentError(
            f"partition is {shown(changed[PARTITION], 40)}; a document stays in its partition, {own!r:.80}: "
            "delete it, and put it into the other one",
            f"metadata.{PARTITION}",
        )
    return {**changed, PARTITION: own}


def placed_by(document: Document, *, partitioned: bool) -> str:
    """What says in which bucket a document is: its partition, in a collection of such, or else its id."""
    return partition_of(document) if partitioned else document.id


def placing_keys(ids: PackedBytes, columns: Mapping[str, Column], *, partitioned: bool) -> list[bytes]:
    """What places stored documents: the partition or the id of each, as UTF-8."""
    return stored_partitions(columns[PARTITION]) if partitioned else ids.take(np.arange(len(ids)))


def stored_partitions(column: Column) -> list[bytes]:
    """The partition of each document of the column, as UTF-8."""
    assert isinstance(column, KeywordColumn)  # noqa: S101 - so the settings declare it
    return column.strings.take(column.codes)


def within_partition(filter: Filter | None, partition: str | None) -> Filter | None:
    """What allows the documents of one partition alone, if one is given, of these those of a filter."""
    if partition is None:
        return filter
    own = In(PARTITION, (partition,))
    return own if filter is None else And((own, *(filter.parts if isinstance(filter, And) else (filter,))))


def partitions_allowed(filter: Filter | None) -> frozenset[str] | None:
    """The partitions that a filter over a partitioned collection names, outside which it allows nothing; None
    where it names none.
    """
    if isinstance(filter, In) and filter.field == PARTITION:
        return frozenset(composed(value) for value in filter.values if isinstance(value, str))
    if not isinstance(filter, And | Or):
        return None
    named = [partitions_allowed(part) for part in filter.parts]
    known = [partitions for partitions in named if partitions is not None]
    if isinstance(filter, And):
        return frozenset.intersection(*known) if known else None
    return frozenset().union(*known) if len(known) == len(named) else None
