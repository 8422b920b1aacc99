"""`tercet checkpoints`: make one of several, or of one whose adapters are in its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.adapters import parsed_weights
from tercet.cli.output import console

app = typer.Typer(help="Merge checkpoints, and unpack adapters of tasks.", no_args_is_help=True)


@app.command()
def merge(
    checkpoints: Annotated[
        list[str],
        typer.Argument(
            metavar="CHECKPOINT…", help="Folders, hub ids, or names of checkpoints that come with Tercet."
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
    base: Annotated[
        str | None,
        typer.Option(
            metavar="CHECKPOINT",
            help="What they were trained from: what each learned since is added to it, times its weight.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str,
        typer.Option(
            metavar="W,W,…", help="A weight for each: by default equal ones, or 1 with --base; -1 takes away."
        ),
    ] = "",
) -> None:
    """Make one checkpoint of several of the same shape: their mean, or the sum of what they learned.

    Example: halfway between a base and what was trained of it:

    tercet checkpoints merge trained/law --base BASE --weights 0.5 --output trained/law-half
    """
    from tercet.models.checkpoint import resolve_checkpoint
    from tercet.training.errors import MissingExtraError

    try:
        from tercet.training.merging import merge_checkpoints
    except ImportError as error:
        raise MissingExtraError(
            f"merging checkpoints needs more packages ({error}): "
            "pip install -c constraints.txt -e '.[cpu,torch,train]'; on a GPU '.[gpu,torch,train]'"
        ) from error
    folders = [resolve_checkpoint(checkpoint) for checkpoint in checkpoints]
    start = None if base is None else resolve_checkpoint(base)
    merge_checkpoints(folders, output, start, parsed_weights(weights))
    console().print(f"Wrote {output}; serve it with --checkpoint {output} --engine torch.", soft_wrap=True)


@app.command("unpack-tasks")
def unpack(
    checkpoint: Annotated[
        str,
        typer.Argument(
            help="jinaai/jina-embeddings-v3, a folder of it, or a hub id that may end in @REVISION."
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
) -> None:
    """Write jina-embeddings-v3 with a folder for each task's adapter, as jina-embeddings-v3-hf has them."""
    from tercet.models.checkpoint import resolve_checkpoint
    from tercet.models.task_slices import unpack_tasks

    tasks = unpack_tasks(resolve_checkpoint(checkpoint), output)
    console().print(
        f"Wrote {output} with adapters for {', '.join(tasks)}; serve it with --checkpoint {output} "
        "--engine torch.",
        soft_wrap=True,
    )
