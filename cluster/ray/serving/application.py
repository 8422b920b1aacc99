"""The application of Ray Serve that a deployment describes: encoders, and routers that ask them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tercet.cluster.ray.serving.config import ServeDeployment
from tercet.service.settings.settings import Settings

ENCODERS, ROUTER = "encoders", "router"
ENCODERS_URL = "http://encoders"  # of the setting encoder_urls, which handles replace
SPARE_REQUESTS = 64  # beside those that our own admission lets in, so that it refuses first
SOON_SECONDS = 1.0
STOP_SECONDS = 35.0  # as the setting shutdown_seconds, and a little
# What guards and tells of a port of its own. Encoders have none: they are asked through Ray alone.
OF_ROUTERS: dict[str, Any] = {
    **dict.fromkeys(("api_keys", "read_keys", "shards", "allowed_hosts", "cors_origins"), ()),
    **dict.fromkeys(("api_keys_file", "read_keys_file", "keys_file", "shards_key", "shards_key_file")),
    **dict.fromkeys(("encoder_key", "encoder_key_file", "audit_file")),
    "audit": "off",
    "audit_required": False,
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One deployment of the application. what: it serves, in words."""

    name: str
    replicas: str
    cpus: float
    gpus: float
    what: str


def pieces_of(deployment: ServeDeployment) -> list[Piece]:
    """What is to run."""
    encoders = deployment.encoders
    fewest, most = encoders.min_replicas, encoders.max_replicas
    return [
        Piece(
            ENCODERS,
            str(fewest) if fewest == most else f"{fewest} to {most}",
            encoders.num_cpus,
            encoders.num_gpus,
            f"checkpoint {deployment.all_settings.get('checkpoint', 'of each node')}",
        ),
        Piece(
            ROUTER,
            str(deployment.routers),
            deployment.router_cpus,
            0,
            f"before {deployment.settings['shards']}",
        ),
    ]


def encoder_settings(deployment: ServeDeployment) -> dict[str, Any]:
    """Of an encoder, which computes on the CPUs that it has of Ray, unless the settings say on how many."""
    own = {"threads": max(1, round(deployment.encoders.num_cpus))}
    return own | deployment.all_settings | OF_ROUTERS


def router_settings(deployment: ServeDeployment) -> dict[str, Any]:
    """Of a router, but for its folder, which each replica makes for itself."""
    own = {"host": deployment.host, "port": deployment.port, "encoder_urls": ENCODERS_URL}
    return deployment.all_settings | own


def application_of(deployment: ServeDeployment) -> Any:
    """The application, to be run by Ray Serve."""
    from ray import serve
    from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

    from tercet.cluster.ray.serving.replicas import ByQueuedTokens, Encoders, Router

    common, part = _common(deployment), deployment.encoders
    encoders = serve.deployment(
        name=ENCODERS,
        ray_actor_options={"num_cpus": part.num_cpus, "num_gpus": part.num_gpus},
        autoscaling_config=AutoscalingConfig(
            min_replicas=part.min_replicas,
            max_replicas=part.max_replicas,
            upscale_delay_s=5,
            downscale_delay_s=120,
            look_back_period_s=15,  # replicas tell every 10 s
            policy=AutoscalingPolicy(  # type: ignore[no-untyped-call]  # untyped
                policy_function=ByQueuedTokens, policy_kwargs={"replica_tokens": part.replica_tokens}
            ),
        ),
        **common,
    )(Encoders).bind(encoder_settings(deployment))
    return serve.deployment(
        name=ROUTER,
        num_replicas=deployment.routers,
        ray_actor_options={"num_cpus": deployment.router_cpus},
        **common,
    )(serve.ingress()(Router)).bind(router_settings(deployment), encoders)


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
