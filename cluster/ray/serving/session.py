"""A connection with the Ray cluster of a deployment: one that is there, or one of this machine alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tercet.cluster.ray.serving.config import LOCAL, RayPart
from tercet.cluster.ray.serving.deploy import end_all
from tercet.cluster.ray.serving.environment import serve_environment
from tercet.cluster.ray.serving.head import local_head
from tercet.cluster.ray.serving.token_file import hold_token
from tercet.cluster.ray.session import require_ray, session


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
