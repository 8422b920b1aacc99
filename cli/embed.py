"""`tercet embed`: the representations of a file of texts, as one file of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli import options
from cli.output import error_console
from service.exceptions import ServiceError

if TYPE_CHECKING:
    from cli.array_file import ArrayFile
    from models.representations import Int64, Output, Representations

WINDOW_TOKENS = 16_384


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
    checkpoint: options.Checkpoint = None,
    engine: options.Engine = None,
    revision: options.Revision = None,
    device: options.Device = None,
    threads: options.Threads = None,
    adapter: options.Adapter = None,
    adapters: options.Adapters = None,
) -> None:
    """Write the three representations of texts as arrays."""
    from cli.array_file import ArrayFile
    from ingest.windows import windows
    from models.encoder import encode, with_adapter
    from service.encoding import local_encoder

    wanted = _parse_outputs(outputs)
    if not output.parent.is_dir():
        raise ServiceError(f"{output.parent}: no such folder to write {output.name} to")
    settings = options.settings_from(
        checkpoint=checkpoint,
        engine=engine,
        revision=revision,
        device=device,
        threads=threads,
        adapters=adapters,
    )
    encoder = with_adapter(local_encoder(settings), adapter)
    count = tokens = truncated = 0
    with ArrayFile(output) as file:
        for window in windows(read_texts(texts), str, WINDOW_TOKENS):
            encoded = encode(encoder, window, input_type, wanted, max_length=max_length)
            _append(file, encoded)
            count += len(window)
            tokens += int(encoded.tokens.sum())
            truncated += int(encoded.truncated.sum())
        if count == 0:
            raise ServiceError(f"{texts}: no texts; give at least one line")
        metadata = {"model": encoder.info.name, "fingerprint": encoder.info.fingerprint}
        found = encoder.info.adapter
        file.finish(metadata if found is None else {**metadata, "adapter": found})
    remark = f"{count:,} texts, {tokens:,} tokens, written to {output}"
    if truncated:
        remark += f"; {truncated:,} texts are longer than the limit and were cut"
    error_console().print(remark, markup=False, soft_wrap=True)


def read_texts(path: Path) -> Iterator[str]:
    """The `text` of each line. Raises SourceError naming the line where there is none."""
    from index.errors import InvalidDocumentError
    from ingest.errors import SourceError
    from ingest.sources.lines import LineFile
    from ingest.sources.records import parse_json

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


def _append(file: ArrayFile, encoded: Representations) -> None:
    """Adds a window's arrays, named as in the binary body of `/embed`."""
    file.append("tokens", encoded.tokens)
    file.append("truncated", encoded.truncated)
    if encoded.dense is not None:
        file.append("dense", encoded.dense)
    if encoded.sparse is not None:
        _append_offsets(file, "sparse_indptr", encoded.sparse.indptr, "sparse_token_ids")
        file.append("sparse_token_ids", encoded.sparse.token_ids)
        file.append("sparse_weights", encoded.sparse.weights)
    if encoded.colbert is not None:
        _append_offsets(file, "colbert_offsets", encoded.colbert.offsets, "colbert")
        file.append("colbert", encoded.colbert.vectors)


def _append_offsets(file: ArrayFile, name: str, offsets: Int64, packed: str) -> None:
    """Adds a window's offsets, counted from the beginning of the packed array as it is so far."""
    shifted = offsets + file.rows(packed)
    file.append(name, shifted[1:] if file.rows(name) else shifted)


def _parse_outputs(words: str) -> list[Output]:
    from models.representations import OUTPUTS

    chosen = [word.strip() for word in words.split(",")]
    unknown = sorted(set(chosen) - set(OUTPUTS))
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(OUTPUTS)}", param_hint="--outputs")
    return [output for output in OUTPUTS if output in chosen]
