"""`tercet adapters`: list those of an encoder, import, export, merge, stack, generate, and route."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from tercet.cli import options
from tercet.cli.adapter_exchange import export_adapter, import_adapter
from tercet.cli.adapter_routes import route
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, error_console, print_json

if TYPE_CHECKING:
    from tercet.models.adapters.record import Adapter
    from tercet.models.encoder import AdapterDescription

app = typer.Typer(
    help="List, import, export, merge, stack, generate and route among adapters.", no_args_is_help=True
)
app.command()(route)
app.command("import")(import_adapter)
app.command("export")(export_adapter)

Folders = Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="Folders of adapters, two or more.")]
Output = Annotated[Path, typer.Option(help="Folder to write; its last part is the adapter's name.")]
Description = Annotated[str, typer.Option(help="What it is, for people.")]


@app.command("list")
@with_flag_groups
def list_adapters(
    *,
    encoding: options.EncoderFlags,
    as_json: options.AsJson = False,
) -> None:
    """Show the adapters and routers of an encoder, and what keeps one from being used."""
    from tercet.service.encoding.service import local_encoder

    settings = encoding.settings()
    adapters = local_encoder(settings).describe_adapters()
    if as_json:
        print_json({"folder": str(settings.adapters_folder), "adapters": list(map(asdict, adapters))})
    elif adapters:
        console().print(_table(adapters))
    else:
        console().print(f"No adapters in {settings.adapters_folder}.", soft_wrap=True)


@app.command()
def merge(
    folders: Folders,
    output: Output,
    method: Annotated[
        Literal["average", "weighted", "arithmetic"],
        typer.Option(help="Equal weights; weights divided by their sum; or weights as they are (a + b - c)."),
    ] = "average",
    weights: Annotated[
        str, typer.Option(metavar="W,W,…", help="A weight for each folder, such as 1,1,-1.")
    ] = "",
    rank: Annotated[
        int | None,
        typer.Option(min=1, help="LoRA: rank to cut to; by default all together.", show_default=False),
    ] = None,
    description: Description = "",
) -> None:
    """Make one adapter of several of one kind and base."""
    from tercet.models.adapters.files import read_adapter, write_adapter
    from tercet.models.adapters.merging import merge_adapters
    from tercet.models.checkpoint import resolve_adapter

    _require_new(output, folders)
    read = [read_adapter(resolve_adapter(str(folder))) for folder in folders]
    merged = merge_adapters(read, method, parsed_weights(weights), rank=rank)
    write_adapter(output, replace(merged, description=description))
    _tell(output, merged)


@app.command()
def stack(folders: Folders, output: Output, description: Description = "") -> None:
    """Make an adapter that puts others of its folder on top of each other, the first one innermost."""
    from tercet.models.adapters.files import read_adapter, write_adapter
    from tercet.models.adapters.library import resolve_parts
    from tercet.models.adapters.record import Adapter
    from tercet.models.adapters.settings import StackSettings
    from tercet.models.errors import CheckpointError

    _require_new(output, folders)
    for folder in folders:
        if folder.resolve().parent != output.resolve().parent:
            raise CheckpointError(
                f"{folder} is not beside {output}; a stack names adapters of its own folder"
            )
    first = read_adapter(folders[0])
    stacked = Adapter(StackSettings(tuple(folder.resolve().name for folder in folders)), first.base)
    stacked = replace(stacked, description=description)
    for part in resolve_parts(stacked, lambda name: read_adapter(output.resolve().parent / name)):
        if part.base != first.base:
            raise CheckpointError(
                f"adapters of two bases, {first.base.name!r} ({first.base.fingerprint}) and "
                f"{part.base.name!r} ({part.base.fingerprint}), cannot be stacked"
            )
    write_adapter(output, stacked)
    _tell(output, stacked)


@app.command()
def generate(
    folder: Annotated[Path, typer.Argument(help="Folder or hub id of a hypernetwork.")],
    language: Annotated[str, typer.Argument(help="A language that it has.")],
    task: Annotated[
        str, typer.Argument(help="A task that it has, also with this language for the first time.")
    ],
    output: Output,
) -> None:
    """Make an adapter of kind bottleneck for a language and a task, by a hypernetwork."""
    from tercet.models.adapters.files import read_adapter, write_adapter
    from tercet.models.adapters.generating import generated
    from tercet.models.checkpoint import resolve_adapter

    _require_new(output, [folder])
    made = generated(read_adapter(resolve_adapter(str(folder))), language, task)
    write_adapter(output, made)
    _tell(output, made)


def _require_new(output: Path, folders: list[Path]) -> None:
    """Refuses to replace an adapter by what is made of it."""
    if output.resolve() in [folder.resolve() for folder in folders]:
        raise typer.BadParameter(f"{output} is one of the folders given; name another", param_hint="--output")


def parsed_weights(words: str) -> list[float]:
    """Numbers between commas. Raises BadParameter for anything else."""
    try:
        return [float(word) for word in words.split(",")] if words else []
    except ValueError as error:
        raise typer.BadParameter(
            f"{words!r} is not numbers such as 1,1,-1", param_hint="--weights"
        ) from error


def _tell(output: Path, adapter: Adapter) -> None:
    parameters = sum(array.size for array in adapter.tensors().values())
    error_console().print(
        f"adapter {output.name} of kind {adapter.kind}, {parameters:,} parameters, written to {output}",
        markup=False,
        soft_wrap=True,
    )


def _routing_words(adapter: AdapterDescription) -> str:
    """What a router chooses among."""
    if adapter.router is None:
        return ""
    if "table" not in adapter.router:
        count = f"{adapter.router['top']} " if "top" in adapter.router else ""
        return f"{count}among {', '.join(name or 'the base' for name in adapter.router['adapters'])}"
    tables = [adapter.router, *filter(None, [adapter.router.get("upper")])]
    return "; on top of it ".join(map(_table_words, tables))


def _table_words(router: dict[str, Any]) -> str:
    """What one table of a fixed router says."""
    rules = [*router["table"].items(), ("any other", router["default"])]
    words = ", ".join(f"{tag} {name or 'the base'}" for tag, name in rules)
    return f"by {router['by']}: {words}"


def _table(adapters: list[AdapterDescription]) -> Table:
    table = Table(box=None, padding=(0, 2))
    for column in ("adapter", "kind", "fingerprint", ""):
        table.add_column(column, overflow="fold")
    for adapter in adapters:
        tags = (adapter.language, adapter.domain, adapter.description, adapter.problem)
        remark = ", ".join(tag for tag in (_routing_words(adapter), *tags) if tag)
        table.add_row(adapter.name, adapter.kind or "", (adapter.fingerprint or "")[:12], remark)
    return table
