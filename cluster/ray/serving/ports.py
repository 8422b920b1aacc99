"""Every port on which a node of Ray Serve listens: the list for firewalls, which a test compares with `ss`.

Ray listens on all addresses. What asks for the token refuses requests without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Guard = Literal["token", "keys", "none"]


@dataclass(frozen=True, slots=True)
class Port:
    """One port, or a range. flag: of `ray start`, or the variable, that sets it, if any.

    guard: what a request needs: the cluster's token, a key of Tercet, or nothing.
    """

    flag: str
    first: int
    last: int
    purpose: str
    guard: Guard
    head_only: bool = False

    @property
    def numbers(self) -> range:
        """All its numbers."""
        return range(self.first, self.last + 1)

    @property
    def shown(self) -> str:
        """As a firewall's list has it."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def _one(flag: str, number: int, purpose: str, guard: Guard, *, head_only: bool = False) -> Port:
    return Port(flag, number, number, purpose, guard, head_only)


CLIENTS = "port"
GCS = _one("--port", 6379, "control of the cluster (GCS)", "token", head_only=True)
HEAD = (
    GCS,
    _one("--ray-client-server-port", 10001, "clients of Ray", "token", head_only=True),
    _one("AUTOSCALER_METRIC_PORT", 44217, "metrics of Ray's autoscaler", "none", head_only=True),
    _one("DASHBOARD_METRIC_PORT", 44227, "metrics of Ray's control", "none", head_only=True),
)
DAEMONS = (
    _one("--node-manager-port", 6380, "the node's daemon (raylet)", "token"),
    _one("--object-manager-port", 6381, "objects between nodes", "token"),
    _one("--metrics-export-port", 8080, "metrics of Ray for Prometheus", "none"),
    _one("--dashboard-agent-listen-port", 52365, "the node's agent: health, and configuration", "token"),
    _one("--dashboard-agent-grpc-port", 52366, "the same for Ray", "token"),
    _one("--runtime-env-agent-port", 52367, "environments of processes", "token"),
)
# Calls between replicas: whatever the system gives (net.ipv4.ip_local_port_range), which nothing sets.
CALLS = Port("", 32768, 60999, "calls between replicas", "token")
WORKERS = Port("--min-worker-port", 10100, 10299, "processes of Ray: replicas and their like", "token")
PROXY = (
    _one("RAY_SERVE_HAPROXY_METRICS_PORT", 9101, "metrics of HAProxy for Prometheus", "none"),
    _one("RAY_SERVE_HAPROXY_STATS_PORT", 8404, "statistics of HAProxy", "none"),
    _one("RAY_SERVE_FALLBACK_PROXY_HTTP_PORT", 8500, "the proxy behind HAProxy", "keys"),
)
ROUTERS = Port("RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT", 30000, 30099, "routers, behind HAProxy", "keys")


def ports_of(clients: int) -> tuple[Port, ...]:
    """All that a node listens on. clients: the port of the deployment."""
    return (
        _one(CLIENTS, clients, "clients: HAProxy, before the routers", "keys"),
        *HEAD,
        *DAEMONS,
        WORKERS,
        CALLS,
        *PROXY,
        ROUTERS,
    )
