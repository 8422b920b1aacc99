"""A connection with the Ray cluster of a deployment: one that is there, or one of this machine alone.

Ray's processes read the variables that are set here when they begin. So a cluster that is there is started
with those of `THROUGHPUT`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tercet.cluster.ray.serving.config import LOCAL, RayPart
from tercet.cluster.ray.serving.deploy import end_all
from tercet.cluster.ray.serving.token_file import hold_token
from tercet.cluster.ray.session import require_ray, session

# HAProxy before the routers, and calls between replicas by gRPC without Ray's store of objects; messages
# between them may have 1 GiB, where Ray's own bound is 4 MiB.
THROUGHPUT = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
    "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(2**30),
}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_LOG_TO_STDERR": "0"}


@contextmanager
def connected(part: RayPart) -> Iterator[None]:
    """Within it, this process is one of the cluster's users; a cluster of this machine ends with it.

    Raises RayMissingError, RayFailedError, or TokenFileError.
    """
    require_ray()
    os.environ |= QUIET | THROUGHPUT
    if part.address != LOCAL:
        hold_token(part.token_file)
        with session(part.address):
            yield
        return
    with TemporaryDirectory(prefix="tercet-", ignore_cleanup_errors=True) as name:
        os.environ |= _of_machine(Path(name))
        with session(None, part.num_cpus, part.num_gpus, Path(name)):
            try:
                yield
            finally:
                end_all()


def _of_machine(folder: Path) -> dict[str, str]:
    """Further variables of a cluster of this machine. folder: private, and for HAProxy's sockets, too: where
    Ray puts them, every user of the machine may give HAProxy orders. Replicas find this package also where it
    is not installed, and end at once.
    """
    return {
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "admin.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(folder / "metrics.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "server-state"),
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",  # after its 5 s a slow machine's is killed
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",  # no other proxy has to hear of it first
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
