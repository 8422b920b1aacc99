"""Exceptions of what runs on Ray.

RayError
├── RayMissingError  Ray is not installed
└── RayFailedError   Ray cannot be reached, or a piece of work failed again and again
"""

from __future__ import annotations

from cluster.errors import ClusterError


class RayError(ClusterError):
    """Any failure of Ray."""


class RayMissingError(RayError):
    """Ray is not installed; the message has the command that does it."""


class RayFailedError(RayError):
    """Ray cannot be reached, or gave up; the message has its reason."""
