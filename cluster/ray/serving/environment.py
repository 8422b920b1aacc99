"""The environment in which all of Ray Serve runs: variables that its processes read when they begin."""

from __future__ import annotations

from pathlib import Path

from tercet.cluster.ray.serving.ports import DAEMONS, HEAD, PROXY, ROUTERS, WORKERS

LARGEST_MESSAGE_BYTES = 2**30  # between replicas; Ray's own bound is 4 MiB

# HAProxy before the routers, and calls between replicas by gRPC without Ray's store of objects.
THROUGHPUT = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
    "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(LARGEST_MESSAGE_BYTES),
}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_LOG_TO_STDERR": "0"}


def serve_environment(folder: Path | None = None) -> dict[str, str]:
    """The variables. folder: a private one for HAProxy's sockets; by default they lie where Ray puts them,
    where every user of the machine may give HAProxy orders.
    """
    sockets = {}
    if folder is not None:
        sockets = {
            "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
            "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "admin.sock"),
            "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(folder / "metrics.sock"),
            "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
            "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "server-state"),
        }
    ports = {port.flag: str(port.first) for port in (*HEAD, *PROXY) if not port.flag.startswith("--")}
    return {
        **QUIET,
        **THROUGHPUT,
        **ports,
        ROUTERS.flag: str(ROUTERS.first),
        ROUTERS.flag.replace("MIN", "MAX"): str(ROUTERS.last),
        **sockets,
    }


def start_flags(*, head: bool) -> list[str]:
    """Flags of `ray start` for the ports of a node."""
    named = [port for port in (*(HEAD if head else ()), *DAEMONS) if port.flag.startswith("--")]
    return [
        *[f"{port.flag}={port.first}" for port in named],
        f"--min-worker-port={WORKERS.first}",
        f"--max-worker-port={WORKERS.last}",
    ]
