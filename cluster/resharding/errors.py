"""Exceptions of re-sharding.

ReshardError
├── NotInShardsError    a URL has no map of shards
└── SettingsMovedError  the shards have different settings, or got others meanwhile
"""

from __future__ import annotations

from cluster.errors import ClusterError


class ReshardError(ClusterError):
    """Any failure of re-sharding."""


class NotInShardsError(ReshardError):
    """A URL has no map of shards."""


class SettingsMovedError(ReshardError):
    """The shards have different settings, or got others meanwhile; nothing was switched."""
