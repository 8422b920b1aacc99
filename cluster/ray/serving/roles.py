"""The settings of each part of a deployment, from those of all."""

from __future__ import annotations

from typing import Any

from tercet.cluster.ray.serving.config import ServeDeployment, ShardPart
from tercet.cluster.ray.serving.handles import ENCODERS_URL

# What guards and tells of a port of its own. Encoders and shards have none: they are asked through Ray alone.
OF_ROUTERS: dict[str, Any] = {
    **dict.fromkeys(("api_keys", "read_keys", "shards", "allowed_hosts", "cors_origins"), ()),
    **dict.fromkeys(("api_keys_file", "read_keys_file", "keys_file", "shards_key", "shards_key_file")),
    **dict.fromkeys(("encoder_key", "encoder_key_file", "audit_file")),
    "audit": "off",
    "audit_required": False,
}


# Only routers ask a shard here, and representations come in the place of texts.
BODIES = {"max_body_bytes": 256 << 20, "max_bodies_bytes": 1 << 30}


def encoder_settings(deployment: ServeDeployment) -> dict[str, Any]:
    """Of an encoder, which computes on the CPUs that it has of Ray, unless the settings say on how many."""
    own = {"threads": max(1, round(deployment.encoders.num_cpus))}
    return own | deployment.all_settings | OF_ROUTERS


def shard_settings(deployment: ServeDeployment, shard: ShardPart) -> dict[str, Any]:
    """Of a shard; without `data` each replica makes a folder for itself."""
    own: dict[str, Any] = {"encoder_urls": ENCODERS_URL}
    if shard.snapshots is not None:
        own["follow"] = shard.snapshots
    if shard.data is not None:
        own["data"] = str(shard.data)
    return BODIES | deployment.all_settings | OF_ROUTERS | own


def router_settings(deployment: ServeDeployment) -> dict[str, Any]:
    """Of a router, but for its folder, which each replica makes for itself."""
    own = {"host": deployment.host, "port": deployment.port, "encoder_urls": ENCODERS_URL}
    return deployment.all_settings | own
