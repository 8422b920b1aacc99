"""`tercet adapters import` and `export`: adapters of the PEFT library read and written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli import options
from tercet.cli.output import error_console, print_warning

Output = Annotated[Path, typer.Option(help="Folder to write; its last part is the adapter's name.")]


def import_adapter(
    checkpoint: Annotated[str, typer.Argument(help="The base: a folder, a hub id, minilm-m3 or multi-m3.")],
    adapter: Annotated[str, typer.Argument(help="A folder or a hub id, which may end in @REVISION.")],
    output: Output,
    revision: options.Revision = None,
) -> None:
    """Copy an adapter, such as one by PEFT, into our form, as one of a base.

    The files of PEFT do not say which base's weights they belong to: that they belong to this one's is then
    recorded.
    """
    from tercet.models.adapters.base import adapter_base
    from tercet.models.adapters.files import write_adapter
    from tercet.models.adapters.peft_files import read_adapter_for
    from tercet.models.checkpoint import checkpoint_name, resolve_adapter, resolve_checkpoint

    folder = resolve_checkpoint(checkpoint, revision)
    base = adapter_base(folder, checkpoint_name(checkpoint))
    write_adapter(output, read_adapter_for(resolve_adapter(adapter), folder, base))
    _tell(output)


def export_adapter(
    folder: Annotated[Path, typer.Argument(help="Folder or hub id of an adapter: LoRA or (IA)³.")],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
) -> None:
    """Write an adapter for PEFT. Its heads, which PEFT does not have, are left out."""
    from tercet.models.adapters.files import read_adapter
    from tercet.models.adapters.peft_writing import write_peft_adapter
    from tercet.models.checkpoint import resolve_adapter

    adapter = read_adapter(resolve_adapter(str(folder)))
    write_peft_adapter(output, adapter)
    if adapter.heads is not None:
        print_warning(f"the heads of {folder} are left out: PEFT's form holds what changes the body")
    _tell(output)


def _tell(output: Path) -> None:
    error_console().print(f"written to {output}", markup=False, soft_wrap=True)
