"""`tercet train`: pre-trains, fine-tunes or adapts an encoder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from tercet.cli import options
from tercet.cli.output import console, error_console, print_json

if TYPE_CHECKING:
    from tercet.training.loop import Report

TRAINED = Path("trained")


def train(
    config: Annotated[Path, typer.Argument(help="Settings of the run, TOML or JSON; see docs/training.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder that the paths of training files start from. [default: the settings' folder]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the checkpoint; a run that was cut off goes on there. [default: trained/NAME]",
            show_default=False,
        ),
    ] = None,
    threads: options.Threads = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line of the log as JSON.")] = False,
) -> None:
    """Train an encoder: pre-training, fine-tuning or an adapter, as the settings say.

    Goes on where a run into the same folder was cut off. Ctrl-C or SIGTERM saves it after the step in work,
    and the exit status is 130. On several GPUs: torchrun --nproc-per-node N -m tercet.cli.main train CONFIG.
    """
    from tercet.training.errors import MissingExtraError
    from tercet.training.settings.reading import read_settings

    settings = read_settings(config)
    try:
        from tercet.training.distributed import is_first_process
        from tercet.training.run import run_training
    except ImportError as error:
        raise MissingExtraError(
            f"training needs more packages ({error}): "
            "pip install -c constraints.txt -e '.[cpu,torch,train]'; on a GPU '.[gpu,torch,train]'"
        ) from error
    folder = output or TRAINED / settings.name
    with _reporting(as_json) as report:
        progress = run_training(settings, data or config.parent, folder, report, threads=threads)
    if progress.best_figure is not None and progress.best_step == 0 and is_first_process():
        error_console().print(
            "No evaluation beat the weights that the run began with, so these were kept. Try other learning "
            "rates or more data.",
            soft_wrap=True,
        )
    if not as_json and is_first_process():
        console().print(f"Wrote {folder}", soft_wrap=True)


@contextmanager
def _reporting(as_json: bool) -> Iterator[Report]:
    """What shows each line of the log: JSON lines, a bar on a terminal, or plain lines."""
    if as_json:
        yield print_json
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield lines_of_text()


@contextmanager
def _bar() -> Iterator[Report]:
    columns = (TextColumn("Training"), BarColumn(bar_width=None), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[numbers]}"), console=error_console()) as progress:
        task = progress.add_task("Training", total=None, numbers="")

        def report(line: dict[str, Any]) -> None:
            if "losses" in line:
                numbers = _step_numbers(line)
                progress.update(task, completed=line["step"], total=line["steps"], numbers=numbers)
            else:
                progress.console.print(_development(line))

        yield report


def lines_of_text() -> Report:
    """What prints every evaluation, and now and then a step: the first, the last, and seldom one between."""
    from tercet.cli.progress import LINES_EVERY_SECONDS, duration

    done, seconds, tokens, shown_at = 0, 0.0, 0, -LINES_EVERY_SECONDS

    def report(line: dict[str, Any]) -> None:
        nonlocal done, seconds, tokens, shown_at
        if "losses" not in line:
            sys.stderr.write(_development(line) + "\n")
            sys.stderr.flush()
            return
        step, steps, now = line["step"], line["steps"], time.monotonic()
        done, seconds, tokens = done + 1, seconds + line["seconds"], tokens + line["tokens"]
        if step < steps and now - shown_at < LINES_EVERY_SECONDS:
            return
        shown_at = now
        rest = f", {duration(seconds / done * (steps - step))} left" if step < steps else ""
        sys.stderr.write(f"step {step}/{steps}  {_step_numbers(line)}, {tokens:,} tokens{rest}\n")
        sys.stderr.flush()

    return report


def _step_numbers(line: dict[str, Any]) -> str:
    losses = ", ".join(f"{name} {value:.3f}" for name, value in line["losses"].items())
    return f"{losses}, {line['tokens'] / line['seconds']:,.0f} tokens/s"


def _development(line: dict[str, Any]) -> str:
    sources = [
        f"  {source}: " + ", ".join(f"{side} {value:.4f}" for side, value in sides.items())
        for source, sides in line["development"].items()
    ]
    return "\n".join([f"step {line['step']}: held-out nDCG@10", *sources])
