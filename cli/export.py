"""`tercet export`: a checkpoint, alone or with an adapter, as one ONNX graph, checked against torch."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from tercet.cli import options
from tercet.cli.output import console, megabytes, print_json, print_pairs, print_warning


def export(
    checkpoint: Annotated[str, typer.Argument(help="A folder, a hub id, minilm-m3 or multi-m3.")],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder to write; itself a checkpoint afterwards.", show_default=False),
    ] = None,
    adapter: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="An adapter, whose graph is written into its own folder.",
            show_default=False,
        ),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantize: a quarter of the size, faster on CPUs.")
    ] = False,
    heads: options.Heads = None,
    mcls_every: options.MclsEvery = None,
    revision: options.Revision = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a checkpoint for the onnx engine, and verify it.

    Prints how far each output is from torch at most, and warns where int8 loses much.
    """
    from tercet.cli.demo import corpus_texts
    from tercet.models.checkpoint import resolve_checkpoint
    from tercet.models.errors import UnsupportedError

    if (output is None) == (adapter is None):
        raise typer.BadParameter("give one of both", param_hint="--output, --adapter")
    for flag, value, part in (("--heads", heads, "heads"), ("--mcls-every", mcls_every, "setting")):
        if value is not None and adapter is not None:
            raise typer.BadParameter(f"goes with --output, whose folder then has the {part}", param_hint=flag)
    folder = resolve_checkpoint(checkpoint, revision)
    lender = None if heads is None else resolve_checkpoint(heads)
    try:
        from tercet.models.export_onnx import export as export_checkpoint
        from tercet.models.export_onnx import export_adapter
    except ImportError as error:
        raise UnsupportedError(
            f"export needs torch ({error}): pip install -c constraints.txt -e '.[cpu,torch]'"
        ) from error
    from tercet.cli.progress import count_progress
    from tercet.models.int8.loss import FIGURES, LEAST_KEPT, poor_sides
    from tercet.models.int8.quantize import unreported

    texts = corpus_texts() if int8 else []
    with count_progress("Rounding", "operators") if int8 else nullcontext(unreported) as progress:
        if adapter is not None:
            report = export_adapter(folder, adapter.resolve(), int8=int8, calibration=texts, report=progress)
        elif output is not None:
            report = export_checkpoint(
                folder,
                output,
                int8=int8,
                calibration=texts,
                heads_of=lender,
                mcls_every=mcls_every,
                report=progress,
            )
    for side in poor_sides(report.kept) if int8 else ():
        print_warning(
            f"int8 differs much from float32: the {FIGURES[side]} is {report.kept[side]:.3f}, and "
            f"{LEAST_KEPT[side]} or more where int8 suits a model; export without --int8, or measure it with "
            "tercet eval"
        )
    if as_json:
        print_json(
            {
                "output": str(report.folder),
                "precision": report.precision,
                "bytes": report.graph_bytes,
                "fingerprint": report.fingerprint,
                "texts": report.texts,
                "differences": report.differences,
                "kept": report.kept,
            }
        )
        return
    print_pairs(
        {
            "graph": f"{report.graph} ({megabytes(report.graph_bytes)}, {report.precision})",
            "fingerprint": report.fingerprint,
            **{
                f"largest difference, {name}": f"{difference:.2e} over {report.texts} texts"
                for name, difference in report.differences.items()
            },
            **({FIGURES[side]: f"{value:.4f}" for side, value in report.kept.items()} if int8 else {}),
        },
        console(),
    )
