"""The `tercet` command: its subcommands, and how failures become exit codes.

0 done, 1 failed (one line on standard error says why), 2 wrong usage, 130 interrupted. Each subcommand
loads what it needs when it runs, so that `tercet --help` and `tercet collection verify` load no encoder.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import metadata
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

import tercet.cli.adapters
import tercet.cli.checkpoints
import tercet.cli.collection.group
import tercet.cli.demo
import tercet.cli.deploy
import tercet.cli.doctor
import tercet.cli.documents
import tercet.cli.embed
import tercet.cli.eval
import tercet.cli.export
import tercet.cli.mcp
import tercet.cli.neutralize
import tercet.cli.pairs
import tercet.cli.plan
import tercet.cli.search
import tercet.cli.serve
import tercet.cli.train
import tercet.cli.tune
from tercet.cli.arguments import require_text
from tercet.cli.first_steps import print_first_steps
from tercet.cli.key_flags import refuse_key_flags
from tercet.cli.output import print_failure
from tercet.cli.short_help import add_command
from tercet.cluster.errors import ClusterError
from tercet.evaluation.errors import DatasetError
from tercet.index.errors import SearchIndexError
from tercet.index.wording import failure_text
from tercet.ingest.errors import IngestError
from tercet.models.cores import usable_cores
from tercet.models.errors import ModelError
from tercet.service.exceptions import ServiceError, SettingsError
from tercet.service.load.open_files import allow_open_files
from tercet.training.errors import TrainingError
from tercet.transfer.errors import TransferError

COMPLETING = "_TERCET_COMPLETE"  # what a shell sets when it asks what may come next
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
FAILURES = (
    ClusterError,
    DatasetError,
    IngestError,
    ModelError,
    SearchIndexError,
    ServiceError,
    TrainingError,
    TransferError,
)


def application(arguments: list[str]) -> typer.Typer:
    """The command line. Flags of `serve` and `encoder` are made from the settings only where needed."""
    app = typer.Typer(
        help="Hybrid retrieval: dense, sparse and ColBERT from one encoder pass, and their exact sum.",
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its tables cut the names of long flags at 80 columns
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_tercet)
    app.command()(tercet.cli.demo.demo)
    app.command()(tercet.cli.doctor.doctor)
    server = bool({"serve", "encoder"} & set(arguments[:1])) or COMPLETING in os.environ
    for command in (tercet.cli.serve.serve_command, tercet.cli.serve.encoder_command):
        add_command(app, command(with_flags=server))
    app.add_typer(tercet.cli.collection.group.app, name="collection")
    app.add_typer(tercet.cli.deploy.app, name="deploy")
    add_command(app, tercet.cli.search.search)
    add_command(app, tercet.cli.embed.embed)
    app.command()(tercet.cli.mcp.mcp)
    add_command(app, tercet.cli.eval.evaluate, "eval")
    add_command(app, tercet.cli.tune.tune)
    app.command()(tercet.cli.export.export)
    app.command()(tercet.cli.neutralize.neutralize)
    app.command()(tercet.cli.plan.plan)
    app.command()(tercet.cli.train.train)
    app.add_typer(tercet.cli.pairs.app, name="pairs")
    app.add_typer(tercet.cli.adapters.app, name="adapters")
    app.add_typer(tercet.cli.checkpoints.app, name="checkpoints")
    app.add_typer(tercet.cli.documents.app, name="documents")
    app.add_typer(tercet.cli.collection.group.former, name="index", hidden=True)
    return app


def _print_version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"tercet {metadata.version('tercet')}\n")
        raise typer.Exit


def _tercet(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself; `--version` has done its work in its callback."""
    if context.invoked_subcommand is None:
        print_first_steps()


def _message(error: Exception) -> str:
    """What is said of a failure; of a collection that is not there also where it would be, or is."""
    folder = getattr(error, "folder", None)
    if not isinstance(folder, Path):
        return str(error)
    from tercet.index.catalog.layout import CollectionLayout
    from tercet.index.collection import list_collections
    from tercet.index.wording import names_instead

    collections, name = folder.parent, folder.name
    data = collections.parent
    for other in (data.parent, data / "data", Path("data")):  # a folder too deep, or not deep enough
        if other != data and CollectionLayout(other / collections.name / name).settings.exists():
            return f"{error} (there is none in {collections}, but there is with --data {other})"
    others = names_instead(name, list_collections(collections))
    return f"{error}{others} (looked in {collections}; --data names another data root)"


def main() -> None:
    """Runs the command line and exits."""
    # Must be set before NumPy, FAISS and torch are loaded, which know nothing of a container's quota.
    os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))
    # Its threads, as good as never used, would wait in a loop for .1 s when NumPy and FAISS are loaded.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    allow_open_files()
    if isinstance(sys.stdout, TextIOWrapper):  # as of standard error: what an encoding lacks ends no command
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    try:
        refuse_key_flags(arguments)
        require_text(arguments)
        application(arguments)(args=arguments, prog_name="tercet")
    except SettingsError as error:
        print_failure(str(error))
        sys.exit(WRONG_USAGE)
    except FAILURES as error:
        print_failure(_message(error))
        sys.exit(INTERRUPTED if isinstance(error.__cause__, KeyboardInterrupt) else FAILED)
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except OSError as error:
        said = failure_text(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        print_failure(f"{said}: free some space, and do it again" if full else said)
        sys.exit(FAILED)
    except MemoryError as error:
        print_failure(
            f"there is too little memory{f' ({error})' if str(error) else ''}: free some, or ask for less"
        )
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
