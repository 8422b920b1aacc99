"""Turns requests away by their heads, before anything else of theirs is looked at."""

from __future__ import annotations

from tercet.service.edge.cross_origin import CrossOrigin
from tercet.service.edge.paths import problem_of_target
from tercet.service.errors import Failure
from tercet.service.http.asgi import READING, Scope, header, headers
from tercet.service.http.hosts import AllowedHosts


def refusal_of_head(scope: Scope, hosts: AllowedHosts, cross_origin: CrossOrigin) -> Failure | None:
    """The answer to a target that is no text, to a foreign host or a foreign page that would write, and to a
    head without a host.

    HTTP/1.0, which load balancers' health checks speak, has none where its client knows none.
    """
    not_text = problem_of_target(scope)
    if not_text is not None:
        return Failure(400, not_text, "not_utf8")
    given = headers(scope, b"host")
    if len(given) != 1 and (given or scope["http_version"] != "1.0"):
        return Failure(400, f"the head has {len(given)} Host headers; send one", "invalid_http")
    host = given[0] if given else ""
    if given and not hosts.serves(host):
        problem = f"this server is not called {host[:200]!r}; name it in the setting allowed_hosts"
        return Failure(403, problem, "host_not_allowed")
    if scope["method"] not in READING:
        origin = header(scope, b"origin")
        if origin is not None and not hosts.trusts(origin, host) and not cross_origin.allows(origin):
            problem = (
                f"pages of {origin[:200]!r} may not do this; name their host in the setting allowed_hosts, "
                "or the origin in cors_origins"
            )
            return Failure(403, problem, "origin_not_allowed")
    return None
