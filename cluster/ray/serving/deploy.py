"""Runs, watches and ends an application of Ray Serve, from a process that is connected to Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tercet.cluster.ray.errors import DeploymentError
from tercet.cluster.ray.serving.application import application_of
from tercet.cluster.ray.serving.config import ServeDeployment

LOOK_SECONDS = 1.0
RUNNING, FAILED = "RUNNING", ("DEPLOY_FAILED", "UNHEALTHY")
REASON_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class PartState:
    """How one deployment of the application does. message: of Ray Serve, where something is wrong."""

    name: str
    state: str
    replicas: int
    message: str


Report = Callable[[PartState], None]


def deploy(deployment: ServeDeployment, report: Report) -> None:
    """Runs the application, in the place of one of its name, and returns once all of it answers.

    report: is told each state that is new. Raises DeploymentError, after which Ray Serve goes on trying.
    """
    from ray import serve

    _start_serve(deployment)
    serve.run_many(
        [serve.RunTarget(application_of(deployment), name=deployment.name, route_prefix="/")],
        wait_for_ingress_deployment_creation=False,
        wait_for_applications_running=False,
    )
    told: dict[str, PartState] = {}
    while True:
        state, message, parts = _states(deployment.name)
        for part in parts:
            if told.get(part.name) != part:
                told[part.name] = part
                report(part)
        if state == RUNNING:
            return
        if state in FAILED:
            faults = [f"{part.name}: {part.message}" for part in parts if part.message] or [message]
            raise DeploymentError(
                f"deployment {deployment.name} is {state}: {_short('; '.join(faults))}; Ray's logs of its "
                "replicas say more. Mend it and deploy again, or take it down (--down)"
            )
        time.sleep(LOOK_SECONDS)


def _start_serve(deployment: ServeDeployment) -> None:
    """Starts Ray Serve where it is not yet. Raises DeploymentError where its proxy does not come up."""
    from ray import serve
    from ray.exceptions import RayActorError
    from ray.serve.config import HTTPOptions, ProxyLocation

    try:
        serve.start(
            proxy_location=ProxyLocation.EveryNode,
            http_options=HTTPOptions(host=deployment.host, port=deployment.port),
        )
    except (RayActorError, TimeoutError) as error:
        raise DeploymentError(
            f"Ray Serve's proxy at port {deployment.port} did not come up: {_short(str(error))}; a node "
            "may be too busy, or the port taken. Ray's logs of its proxy say more; deploy again"
        ) from error


def take_down(name: str) -> None:
    """Ends the application; Ray Serve stays, for others. Raises DeploymentError where there is none."""
    from ray import serve

    if name not in serve.status().applications:
        raise DeploymentError(f"there is no deployment {name} on this Ray cluster")
    serve.delete(name)


def end_all() -> None:
    """Ends Ray Serve, once requests under way are answered."""
    from ray import serve

    serve.shutdown()  # type: ignore[no-untyped-call]  # untyped


def _states(name: str) -> tuple[str, str, list[PartState]]:
    """Of the application, with its message, and of its parts."""
    from ray import serve

    found = serve.status().applications.get(name)
    if found is None:
        return "NOT_STARTED", "", []
    parts = [
        PartState(each, str(part.status.value), _running(part), _short(part.message))
        for each, part in found.deployments.items()
    ]
    return str(found.status.value), found.message, parts


def _running(part: Any) -> int:
    """How many replicas of a deployment's status answer."""
    states: Mapping[Any, int] = part.replica_states
    return sum(number for state, number in states.items() if state == RUNNING)


def _short(message: str) -> str:
    """The end of what may be a long traceback, which has the reason."""
    return " ".join(message.split())[-REASON_CHARACTERS:]
