"""The application of Ray Serve that a deployment describes: encoders, one part for each shard, routers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tercet.cluster.objects.opening import open_store
from tercet.cluster.ray.errors import DeploymentError
from tercet.cluster.ray.serving.autoscaling import ByQueuedTokens
from tercet.cluster.ray.serving.config import ServeDeployment, ShardPart
from tercet.cluster.ray.serving.roles import encoder_settings, router_settings, shard_settings
from tercet.cluster.shards.map import ShardMap, newest_map
from tercet.service.settings.settings import Settings

ENCODERS, ROUTER = "encoders", "router"
SPARE_REQUESTS = 64  # beside those that our own admission lets in, so that it refuses first
SOON_SECONDS = 1.0
NODE_SHARE = 0.001  # of the resource that each Ray node has by its address
STOP_SECONDS = 35.0  # as the setting shutdown_seconds, and a little


@dataclass(frozen=True, slots=True)
class Piece:
    """One deployment of the application. what: it serves, in words."""

    name: str
    replicas: str
    cpus: float
    gpus: float
    what: str


def shards_of(deployment: ServeDeployment) -> Sequence[ShardPart]:
    """The shards that Ray is to run. Raises DeploymentError where a map names none, or StoreAddressError."""
    map = _map_of(deployment)
    if map is None:
        return deployment.shards
    url = str(deployment.shard_map).rstrip("/")
    return [ShardPart(snapshots=f"{url}/{place.snapshots}") for place in map.shards]


def _map_of(deployment: ServeDeployment) -> ShardMap | None:
    if deployment.shard_map is None:
        return None
    found = newest_map(open_store(deployment.shard_map))
    if found is None:
        raise DeploymentError(
            f"{deployment.shard_map} has no map of shards; build one (tercet collection build --shards N "
            f"--output {deployment.shard_map})"
        )
    return found


def pieces_of(deployment: ServeDeployment, shards: Sequence[ShardPart]) -> list[Piece]:
    """What is to run."""
    encoders = deployment.encoders
    fewest, most = encoders.min_replicas, encoders.max_replicas
    asked = deployment.settings.get("shards", f"{len(shards)} shards")
    return [
        Piece(
            ENCODERS,
            str(fewest) if fewest == most else f"{fewest} to {most}",
            encoders.num_cpus,
            encoders.num_gpus,
            f"checkpoint {deployment.all_settings.get('checkpoint', 'of each node')}",
        ),
        *[
            Piece(shard_name(number), "1", shard.num_cpus, 0, str(shard.snapshots or shard.data))
            for number, shard in enumerate(shards)
        ],
        Piece(ROUTER, str(deployment.routers), deployment.router_cpus, 0, f"before {asked}"),
    ]


def shard_name(number: int) -> str:
    """What a shard is called: its deployment, and in errors and answers."""
    return f"shard-{number}"


def application_of(deployment: ServeDeployment, shards: Sequence[ShardPart]) -> Any:
    """The application, to be run by Ray Serve. shards: those of `shards_of`."""
    from ray import serve

    from tercet.cluster.ray.serving.replicas import Encoders, Router, Shard

    common = _common(deployment)
    part = deployment.encoders
    encoders = serve.deployment(
        name=ENCODERS,
        ray_actor_options={"num_cpus": part.num_cpus, "num_gpus": part.num_gpus},
        autoscaling_config=_autoscaling(part.min_replicas, part.max_replicas, part.replica_tokens),
        **common,
    )(Encoders).bind(encoder_settings(deployment))
    found = [
        serve.deployment(
            name=shard_name(number),
            num_replicas=1,
            max_surge_percent=0,  # its data root belongs to one at a time
            ray_actor_options={"num_cpus": shard.num_cpus, **_place(shard)},
            **common,
        )(Shard).bind(shard_settings(deployment, shard), encoders)
        for number, shard in enumerate(shards)
    ]
    named = [(shard_name(number), bound) for number, bound in enumerate(found)]
    shard_map = _map_of(deployment)
    placement = None if shard_map is None else shard_map.placement
    return serve.deployment(
        name=ROUTER,
        num_replicas=deployment.routers,
        ray_actor_options={"num_cpus": deployment.router_cpus},
        **common,
    )(serve.ingress()(Router)).bind(router_settings(deployment), encoders, named, placement)


def _common(deployment: ServeDeployment) -> dict[str, Any]:
    """What is alike in all parts. Our own admission refuses first, with reasons: each replica takes more
    requests than that lets in, and as many may wait for one.
    """
    from ray.serve.config import BackpressureConfig
    from ray.serve.schema import LoggingConfig

    requests = Settings.model_fields["max_concurrent_requests"].default
    requests = int(deployment.settings.get("max_concurrent_requests", requests))
    return {
        "max_ongoing_requests": requests + SPARE_REQUESTS,
        "max_queued_requests": requests,
        "backpressure_config": BackpressureConfig(status_code=429, retry_after_s=SOON_SECONDS),
        "graceful_shutdown_timeout_s": STOP_SECONDS,
        "graceful_shutdown_wait_loop_s": SOON_SECONDS,
        "logging_config": LoggingConfig(enable_access_log=False),  # our own log has each request
    }


def _autoscaling(fewest: int, most: int, replica_tokens: int) -> Any:
    from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

    return AutoscalingConfig(
        min_replicas=fewest,
        max_replicas=most,
        upscale_delay_s=5,
        downscale_delay_s=120,
        look_back_period_s=15,  # replicas tell every 10 s
        policy=AutoscalingPolicy(  # type: ignore[no-untyped-call]  # untyped
            policy_function=ByQueuedTokens, policy_kwargs={"replica_tokens": replica_tokens}
        ),
    )


def _place(shard: ShardPart) -> dict[str, Any]:
    """Where a shard must run: on the node that has its data root, where it names one."""
    return {} if shard.node is None else {"resources": {f"node:{shard.node}": NODE_SHARE}}
