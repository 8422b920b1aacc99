"""Exceptions of what runs on Ray.

RayError
├── RayMissingError      Ray is not installed
├── RayFailedError       Ray cannot be reached, or a piece of work failed again and again
├── DeploymentFileError  a file describes no deployment
├── DeploymentError      a deployment did not come about, or is not there
└── TokenFileError       the file of Ray's token cannot be used
"""

from __future__ import annotations

from tercet.cluster.errors import ClusterError


class RayError(ClusterError):
    """Any failure of Ray."""


class RayMissingError(RayError):
    """Ray is not installed; the message has the command that does it."""


class RayFailedError(RayError):
    """Ray cannot be reached, or gave up; the message has its reason."""


class DeploymentFileError(RayError):
    """A file describes no deployment; the message has its name, the value and the remedy."""


class DeploymentError(RayError):
    """A deployment did not come about, or is not there; the message has the reason of Ray Serve."""


class TokenFileError(RayError):
    """The file of the token cannot be used: it is empty, or others may read it."""
