"""`tercet collection`: `inspect` and `verify`; the other commands have files of their own."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.output import console, counted, megabytes, print_json, print_pairs

if TYPE_CHECKING:
    from tercet.index.catalog.defaults import SearchDefaults
    from tercet.index.catalog.settings import CollectionSettings
    from tercet.index.inspection import Inspection


def show(name: options.Name, data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Show a collection's settings, its current snapshot, and what they take on disk."""
    from tercet.index.inspection import inspect_collection

    root = options.collections_root(options.settings_from(data=data))
    description = _described(inspect_collection(root, name))
    if as_json:
        print_json(description)
    else:
        print_pairs(_flattened(description), console())


Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Read nothing: note that a folder that was copied here may be opened as it is."
    ),
]


def verify(
    name: options.Name, data: options.Data = None, trust: Trust = False, as_json: options.AsJson = False
) -> None:
    """Check every checksum, count, offset and id of the current snapshot; exit code 1 on damage.

    A collection that was copied here is checked by its checksums when it is first opened, unless this has
    done so before.
    """
    from tercet.index.collection import Collection
    from tercet.index.errors import DamagedIndexError
    from tercet.index.verified import note_verified
    from tercet.index.verify import verify as problems_of

    root = options.collections_root(options.settings_from(data=data))
    if trust:
        note_verified(Collection.open(root, name).layout)
        if as_json:
            print_json({"name": name, "trusted": True})
        else:
            console().print(f"Collection {name!r} will be opened as it is.")
        return
    problems = problems_of(root, name)
    if as_json:
        print_json({"name": name, "sound": not problems, "problems": problems})
    elif not problems:
        console().print(f"Collection {name!r} is sound.")
    if problems:
        more = f" (and {len(problems) - 1} more, see --json)" if len(problems) > 1 else ""
        raise DamagedIndexError(f"{problems[0]}{more}")


def _described(inspection: Inspection) -> dict[str, Any]:
    """Everything that an inspection found, as JSON has it."""
    settings = inspection.settings
    return {
        "name": settings.name,
        "title": settings.title,
        "snapshot": inspection.snapshot,
        "documents": inspection.documents,
        "windows": inspection.windows,
        "token_vectors": inspection.tokens,
        "encoder": settings.encoder,
        "adapter": settings.adapter,
        "fingerprint": settings.fingerprint,
        "dense_dimension": settings.dense_dimension,
        "colbert_dimension": settings.colbert_dimension,
        "vocabulary_size": settings.vocabulary_size,
        "dense_kind": settings.dense_kind,
        "dense_memory_bytes": settings.dense_memory_bytes,
        "dense_index": _dense_index(inspection),
        "token_codec": settings.token_codec,
        "token_pooling": settings.token_pooling,
        "lexical": settings.lexical,
        "bm25": settings.bm25,
        "bm25_language": settings.bm25_language if settings.bm25 else None,
        "window": None if settings.window is None else asdict(settings.window),
        "fields": settings.own_fields,
        "partitioned": settings.partitioned,
        "dense_effort": None if inspection.effort is None else asdict(inspection.effort),
        "defaults": None if inspection.defaults is None else _defaults(inspection.defaults, settings),
        "bytes": {**inspection.part_bytes, "total": inspection.total_bytes},
        "segments": [asdict(segment) for segment in inspection.segments],
    }


def _dense_index(inspection: Inspection) -> dict[str, Any]:
    kind, reason = inspection.dense_kind
    return {"kind": kind, "reason": reason, "vectors": dict(inspection.dense_vectors)}


def _defaults(defaults: SearchDefaults, settings: CollectionSettings) -> dict[str, Any]:
    from tercet.service.search.answers import sides_record

    return {
        "weights": sides_record(defaults.weights, bm25=settings.bm25),
        "candidates": sides_record(defaults.candidates, bm25=settings.bm25),
        "tuning": None if defaults.tuning is None else asdict(defaults.tuning),
    }


def _flattened(description: dict[str, Any]) -> dict[str, Any]:
    """The description of a collection for people: one line a value."""
    lines = {
        name.replace("_", " "): value
        for name, value in description.items()
        if name not in ("bytes", "segments", "bm25_language")
    }
    lines["title"] = description["title"] or "none"
    lines["adapter"] = description["adapter"] or "none"
    language = description["bm25_language"]
    lines["bm25"] = f"{language}; weighed where a search gives it a weight" if language else "no"
    lines["partitioned"] = "yes" if description["partitioned"] else "no"
    window = description["window"]
    lines["window"] = f"{window['tokens']} tokens, overlap {window['overlap']}" if window else "none"
    if window is None:
        del lines["windows"]
    dense = description["dense_index"]
    lines["dense index"] = f"{dense['kind']}: {dense['reason']}"
    memory = lines.pop("dense memory bytes")
    lines["dense memory"] = "half of the machine's" if memory is None else megabytes(memory)
    lines["dense vectors"] = ", ".join(f"{n:,} {kind}" for kind, n in dense["vectors"].items()) or "none"
    lines["snapshot"] = description["snapshot"] or "none yet"
    lines["fields"] = ", ".join(f"{name}: {kind}" for name, kind in description["fields"].items()) or "none"
    lines["dense effort"] = _effort_line(description["dense_effort"])
    lines["defaults"] = _defaults_line(description["defaults"])
    for part, size in description["bytes"].items():
        lines[f"{part}, size"] = megabytes(size)
    for number, segment in enumerate(description["segments"], start=1):
        lines[f"segment {number}"] = (
            f"{segment['id']}, {counted(segment['documents'], 'document')}, dense {segment['dense_kind']}"
        )
    return lines


def _effort_line(effort: dict[str, Any] | None) -> str:
    if effort is None:
        return "the usual"
    option = "ef_search" if effort["kind"] == "hnsw" else "nprobe"
    return (
        f"{option} {effort[option]} for {effort['kind']}; recall@{effort['k']} {effort['recall']:.4f} on "
        f"{effort['queries']:,} queries of snapshot {effort['snapshot']}"
    )


def _defaults_line(defaults: dict[str, Any] | None) -> str:
    if defaults is None:
        return "none stored"
    weights, candidates, tuning = defaults["weights"], defaults["candidates"], defaults["tuning"]
    origin = "stored by hand"
    if tuning is not None:
        origin = f"nDCG@10 {tuning['tuned']:.4f} against {tuning['plain']:.4f} of 1, 1, 1 on held-out queries"
    return (
        f"weights {', '.join(f'{weight:g}' for weight in weights.values())}; "
        f"candidates {', '.join(map(str, candidates.values()))}; {origin}"
    )
