"""Exceptions about snapshots on object storage.

SnapshotError
├── SnapshotNotFoundError   nothing is published there
├── DamagedSnapshotError    a manifest is no manifest, or names what cannot be
├── OtherCollectionError    the URL has snapshots of another collection
├── NotContinuedError       what is there has writes that what would take its place has not
├── PublishedMeanwhileError others published again and again
└── NotFollowedError        a data root has a collection of its own where one is to be followed
"""

from __future__ import annotations

from tercet.cluster.errors import ClusterError


class SnapshotError(ClusterError):
    """Any failure of a snapshot on object storage; its message names the URL and the remedy."""


class SnapshotNotFoundError(SnapshotError):
    """Nothing is published at a URL."""


class DamagedSnapshotError(SnapshotError):
    """A published manifest cannot be read; the message names it."""


class OtherCollectionError(SnapshotError):
    """A URL has snapshots of another collection; the message names both."""


class NotContinuedError(SnapshotError):
    """What is there has writes that what would take its place has not; the message says which, and how to go
    on with the one or the other.
    """


class PublishedMeanwhileError(SnapshotError):
    """Others published again and again, so that this one found no number."""


class NotFollowedError(SnapshotError):
    """A data root has a collection of its own of the name of one that is to be followed."""
