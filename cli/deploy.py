"""`tercet deploy`: a whole deployment, on what others run."""

from __future__ import annotations

import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.building.stopping import interruptible
from tercet.cli.output import console, error_console, print_json, print_warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tercet.cluster.ray.serving.application import Piece
    from tercet.cluster.ray.serving.config import ServeDeployment
    from tercet.cluster.ray.serving.deploy import PartState

app = typer.Typer(help="Run encoders and routers together.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def deploy() -> None:
    """Keeps `ray` a command of its own name, though it is the only one."""


@app.command()
def ray(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The deployment: YAML or TOML.")],
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A Ray cluster, as HOST:PORT, in the place of the file's; local: one of this machine, as "
            "long as this command runs.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
    down: Annotated[bool, typer.Option("--down", help="End the deployment of the file's name.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run encoders and routers on Ray Serve, in the place of a deployment of the same name.

    Shards are servers of their own, which the file names. On a cluster the command ends once all of it
    answers; the deployment stays.
    """
    from tercet.cluster.ray.errors import DeploymentError
    from tercet.cluster.ray.serving.application import pieces_of
    from tercet.cluster.ray.serving.config import LOCAL, read_deployment
    from tercet.cluster.ray.serving.deploy import deploy as run
    from tercet.cluster.ray.serving.deploy import take_down
    from tercet.cluster.ray.serving.session import connected

    deployment = read_deployment(file)
    part = deployment.ray if address is None else deployment.ray.model_copy(update={"address": address})
    if down:
        if part.address == LOCAL:
            raise DeploymentError(
                "a deployment of this machine ends with its command: interrupt that (Ctrl-C), or say with "
                "--address which cluster it is on"
            )
        with connected(part):
            take_down(deployment.name)
        console().print(f"Deployment {deployment.name} is down.", soft_wrap=True)
        return
    plan = pieces_of(deployment)
    if as_json:
        print_json(_plan(deployment, plan, part.address))
    else:
        _print_plan(deployment, plan, part.address)
    if dry_run:
        return
    _warn_without_keys(deployment)
    with interruptible(), connected(part):
        run(deployment, _report)
        error_console().print(
            f"Deployment {deployment.name} answers on port {deployment.port}.", soft_wrap=True
        )
        if part.address == LOCAL:
            signal.pause()


def _report(state: PartState) -> None:
    message = f": {state.message}" if state.message else ""
    error_console().print(
        f"{state.name}  {state.state.lower()}, {state.replicas} running{message}", soft_wrap=True
    )


def _warn_without_keys(deployment: ServeDeployment) -> None:
    if not {"api_keys", "api_keys_file", "read_keys", "read_keys_file", "keys_file"} & set(
        deployment.settings
    ):
        print_warning(
            f"without a key whoever reaches port {deployment.port} may read and change everything: set "
            "keys_file or api_keys_file among the settings, unless the environment of the nodes does"
        )


def _plan(deployment: ServeDeployment, pieces: Sequence[Piece], address: str) -> dict[str, Any]:
    return {
        "name": deployment.name,
        "address": address,
        "port": deployment.port,
        "deployments": [asdict(piece) for piece in pieces],
    }


def _print_plan(deployment: ServeDeployment, pieces: Sequence[Piece], address: str) -> None:
    from rich.table import Table

    out = console()
    out.print(f"Deployment {deployment.name} on Ray ({address}), port {deployment.port}:", soft_wrap=True)
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("deployment", "replicas", "CPUs", "GPUs", "what"):
        table.add_column(name)
    for piece in pieces:
        table.add_row(piece.name, piece.replicas, f"{piece.cpus:g}", f"{piece.gpus:g}", piece.what)
    out.print(table)
