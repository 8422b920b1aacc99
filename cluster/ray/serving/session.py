"""A connection with the Ray cluster of a deployment: one that is there, or one of this machine alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.ray.serving.config import LOCAL, RayPart
from cluster.ray.serving.deploy import end_all
from cluster.ray.serving.environment import serve_environment
from cluster.ray.serving.head import local_head
from cluster.ray.serving.token_file import hold_token
from cluster.ray.session import require_ray, session


@contextmanager
def connected(part: RayPart) -> Iterator[None]:
    """Within it, this process is one of the cluster's users; a cluster of this machine ends with it.

    Raises RayMissingError, RayFailedError, or TokenFileError.
    """
    require_ray()
    hold_token(part.token_file)
    os.environ |= serve_environment()
    if part.address == LOCAL:
        with local_head(part) as address, session(address):
            try:
                yield
            finally:
                end_all()
    else:
        with session(part.address):
            yield
