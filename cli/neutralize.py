"""`tercet neutralize`: a checkpoint whose vectors do not tell languages apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli import options
from tercet.cli.output import console, print_pairs


def neutralize(
    checkpoint: Annotated[str, typer.Argument(help="A folder, a hub id, minilm-m3 or multi-m3.")],
    texts: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Texts with a file for each language: de.txt, a text a line, or de.jsonl.",
            exists=True,
            file_okay=False,
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder to write; itself a checkpoint afterwards.")],
    directions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Directions in which languages differ to take out; by default 14, or one fewer than there "
            "are languages.",
            show_default=False,
        ),
    ] = None,
    revision: options.Revision = None,
) -> None:
    """Write a checkpoint that finds documents in any language alike, where a collection mixes languages.

    Without training: the directions in which the mean vectors of languages differ go out of dense and token
    vectors. Encoding takes no longer, and lexical weights stay.
    """
    from tercet.models.checkpoint import resolve_checkpoint
    from tercet.models.encoder import Encoder
    from tercet.models.graphs.record import has_export
    from tercet.models.loader import load_encoder
    from tercet.training.errors import MissingExtraError

    try:
        from tercet.training.neutralizing import neutralize as neutralize_checkpoint
        from tercet.training.neutralizing import texts_by_language
    except ImportError as error:
        raise MissingExtraError(
            f"to change a checkpoint needs more packages ({error}): "
            "pip install -c constraints.txt -e '.[cpu,torch]'; on a GPU '.[gpu,torch]'"
        ) from error
    folder = resolve_checkpoint(checkpoint, revision)
    read = texts_by_language(texts)

    def encoder(checkpoint: Path) -> Encoder:
        return load_encoder(str(checkpoint), "onnx" if has_export(checkpoint) else "torch")

    done = neutralize_checkpoint(folder, encoder(folder), read, output, directions)
    print_pairs(
        {
            "checkpoint": output,
            "languages": len(done.texts),
            "directions out of dense vectors": done.dense,
            "directions out of token vectors": done.colbert,
            "fingerprint": encoder(output).info.fingerprint,
        },
        console(),
    )
