"""`tercet embed`: the representations of a file of texts, as one file of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import counted, error_console
from tercet.service.exceptions import ServiceError

if TYPE_CHECKING:
    from tercet.models.representations import Output


@with_flag_groups
def embed(
    texts: Annotated[Path, typer.Option("--input", help='JSONL (also .gz) with a "text" in each line.')],
    output: Annotated[Path, typer.Option(help="File to write, such as texts.safetensors.")],
    input_type: Annotated[
        Literal["document", "query"], typer.Option(help="Chooses the instruction prefix, if any.")
    ] = "document",
    outputs: Annotated[str, typer.Option(help="Which representations to write.")] = "dense,sparse,colbert",
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a text at most.", show_default=False)
    ] = None,
    *,
    encoding: options.EncoderFlags,
    adapter: options.Adapter = None,
) -> None:
    """Write the three representations of texts as arrays."""
    from tercet.index.files.directory import write_atomically
    from tercet.models.encoder import with_adapter
    from tercet.models.stream import encode_stream
    from tercet.service.answers.binary import BinaryBody
    from tercet.service.encoding.service import local_encoder

    wanted = _parse_outputs(outputs)
    if not output.parent.is_dir():
        raise ServiceError(f"{output.parent}: no such folder to write {output.name} to")
    settings = encoding.settings()
    encoder = with_adapter(local_encoder(settings), adapter)
    count = tokens = truncated = 0
    with BinaryBody(output.parent) as body:
        for encoded in encode_stream(encoder, read_texts(texts), input_type, wanted, max_length=max_length):
            body.append(replace(encoded, routes=None))  # of millions of texts they would fit into no header
            count += len(encoded)
            tokens += int(encoded.tokens.sum())
            truncated += int(encoded.truncated.sum())
        if count == 0:
            raise ServiceError(f"{texts}: no texts; give at least one line")
        metadata = {"model": encoder.info.name, "fingerprint": encoder.info.fingerprint}
        if encoder.info.adapter is not None:
            metadata["adapter"] = encoder.info.adapter
        write_atomically(output, body.chunks(metadata))
    remark = f"{counted(count, 'text')}, {counted(tokens, 'token')}, written to {output}"
    if truncated:
        remark += (
            f"; {counted(truncated, 'text is', 'texts are')} longer than the limit and "
            f"{'was' if truncated == 1 else 'were'} cut"
        )
    error_console().print(remark, markup=False, soft_wrap=True)


def read_texts(path: Path) -> Iterator[str]:
    """The `text` of each line. Raises SourceError naming the line where there is none."""
    from tercet.index.errors import InvalidDocumentError
    from tercet.ingest.errors import SourceError
    from tercet.ingest.sources.json_text import parse_json
    from tercet.ingest.sources.lines import LineFile

    lines = LineFile(path)
    for number, line in lines:
        if line is None:
            raise SourceError(f"{path} line {number}: longer than {lines.limit_bytes} bytes, the limit")
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except InvalidDocumentError as error:
            raise SourceError(f"{path} line {number}: {error}") from error
        text = record.get("text") if isinstance(record, dict) else None
        if not isinstance(text, str):
            raise SourceError(f'{path} line {number}: expected an object with a string as "text"')
        yield text


def _parse_outputs(words: str) -> list[Output]:
    from tercet.models.representations import OUTPUTS

    chosen = [word.strip() for word in words.split(",")]
    unknown = sorted(set(chosen) - set(OUTPUTS))
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(OUTPUTS)}", param_hint="--outputs")
    return [output for output in OUTPUTS if output in chosen]
