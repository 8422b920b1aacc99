"""Exceptions of re-sharding.

ReshardError
├── NotInShardsError    a URL has no map of shards
├── ServersError        the servers of shards are not such that a collection can move between them
└── SettingsMovedError  the shards have different settings, or got others meanwhile
"""

from __future__ import annotations

from tercet.cluster.errors import ClusterError


class ReshardError(ClusterError):
    """Any failure of re-sharding."""


class NotInShardsError(ReshardError):
    """A URL has no map of shards."""


class ServersError(ReshardError):
    """The servers of shards are not such that a collection can move between them while it is written."""


class SettingsMovedError(ReshardError):
    """The shards have different settings, or got others meanwhile; nothing was switched."""
