"""`tercet adapters route`: learns a router from texts of each adapter's domain, or writes a table."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from rich.table import Table

from tercet.cli import options
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, error_console, print_json

if TYPE_CHECKING:
    from tercet.models.adapters.record import Adapter
    from tercet.models.adapters.routers import FixedSettings, LearnedSettings, Router, RouterBase, TagKind
    from tercet.models.encoder import Encoder
    from tercet.models.representations import Float32
    from tercet.training.routers import RouterReport

Scores = Literal["centroid", "gate"]
SLICE_TEXTS = 512
# Cosines of texts and centroids lie close together, so that a temperature of 1 would weigh all alike.
TEMPERATURES = {"gate": 1.0, "centroid": 0.05}


@with_flag_groups
def route(
    name: Annotated[str, typer.Argument(help="Name of the router, a folder beside the adapters.")],
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="ADAPTER=FILE…",
            help="Texts of each adapter's domain: JSONL with text, or .txt, one a line; =FILE for the base. "
            "For kind fixed: TAG=ADAPTER, or with two kinds of tags KIND:TAG=ADAPTER, the lower adapters' "
            "kind first.",
        ),
    ],
    kind: Annotated[
        Literal["centroid", "gate", "soft", "fixed"], typer.Option(help="How it chooses.")
    ] = "gate",
    scores: Annotated[Scores, typer.Option(help="What a soft router weighs adapters by.")] = "gate",
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Of a soft router; the lower, the harder. [default: 1 of a gate, 0.05 of centroids]",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(help="How many a soft router mixes for a text. [default: all]", show_default=False),
    ] = None,
    by: Annotated[
        Literal["language", "domain", "collection"], typer.Option(help="What the tags of kind fixed are.")
    ] = "language",
    default: Annotated[
        str, typer.Option(help="Kind fixed: the adapter for other tags and for none, or else the base.")
    ] = "",
    description: Annotated[str, typer.Option(help="What it is, for people.")] = "",
    *,
    encoding: options.EncoderFlags,
    as_json: options.AsJson = False,
) -> None:
    """Make a router, which chooses adapters for texts, and report its accuracy on texts held out."""
    from tercet.models.adapters.router_files import write_router
    from tercet.models.adapters.routers import Router
    from tercet.service.encoding.service import local_encoder
    from tercet.training.routers import learn_router

    pairs = _pairs(given)
    settings = encoding.settings()
    root = settings.adapters_folder
    if kind == "fixed":
        fixed = _tables(pairs, by, _adapter(default))
        router = Router(fixed, description=description)
        _base_of(root, fixed.adapters)
        _require_pairs(root, fixed.pairs)
        write_router(root / name, router)
        _tell(root / name, router)
        return
    learned = _settings(kind, tuple(_adapter(adapter) for adapter in pairs), scores, temperature, top)
    base = _base_of(root, learned.adapters)
    assert base is not None  # noqa: S101 - two distinct names are never the base alone
    encoder = local_encoder(settings)
    _require_base(encoder, learned.adapters)
    groups = [_dense(encoder, Path(file)) for file in pairs.values()]
    router, report = learn_router(learned, base, groups)
    router = replace(router, description=description)
    write_router(root / name, router)
    _tell(root / name, router)
    _report(router, report, as_json=as_json)


def _pairs(given: list[str]) -> dict[str, str]:
    """The two sides of each argument."""
    pairs: dict[str, str] = {}
    for word in given:
        left, mark, right = word.partition("=")
        if not mark or left in pairs:
            raise typer.BadParameter(
                f"{word!r} is not a new ADAPTER=FILE, or TAG=ADAPTER for kind fixed",
                param_hint="ADAPTER=FILE",
            )
        pairs[left] = right
    return pairs


def _tables(pairs: dict[str, str], by: TagKind, default: str | None) -> FixedSettings:
    """One table, or two where the tags' kinds stand before them. The default is that of the first."""
    from tercet.models.adapters.routers import TAG_MARK, FixedSettings

    tables: dict[str, dict[str, str | None]] = {}
    for left, adapter in pairs.items():
        kind, mark, tag = left.rpartition(TAG_MARK)
        table = tables.setdefault(kind if mark else by, {})
        if tag in table:
            raise typer.BadParameter(f"the tag {tag!r} is given twice", param_hint="TAG=ADAPTER")
        table[tag] = _adapter(adapter)
    (lower, first), *rest = tables.items()
    if len(rest) > 1:
        raise typer.BadParameter(f"tags of {len(tables)} kinds; give two at most", param_hint="TAG=ADAPTER")
    upper = [FixedSettings(cast("TagKind", kind), tags) for kind, tags in rest]
    return FixedSettings(cast("TagKind", lower), first, default, next(iter(upper), None))


def _require_pairs(root: Path, names: tuple[str, ...]) -> None:
    """Raises CheckpointError for a pair whose adapters cannot lie on each other."""
    from tercet.models.adapters.files import read_adapter
    from tercet.models.adapters.library import pair_of, resolve_parts

    def read(name: str) -> Adapter:
        return read_adapter(root / name)

    for name in names:
        resolve_parts(pair_of(name, read), read)


def _adapter(word: str) -> str | None:
    return word or None


def _settings(
    kind: str,
    adapters: tuple[str | None, ...],
    scores: Scores,
    temperature: float | None,
    top: int | None,
) -> LearnedSettings:
    from tercet.models.adapters.routers import CentroidSettings, GateSettings, SoftSettings

    if kind == "centroid":
        return CentroidSettings(adapters)
    if kind == "gate":
        return GateSettings(adapters)
    return SoftSettings(adapters, scores, TEMPERATURES[scores] if temperature is None else temperature, top)


def _base_of(root: Path, adapters: tuple[str | None, ...]) -> RouterBase | None:
    """The base that all adapters share, or None where no adapter is named."""
    from tercet.models.adapters.files import read_adapter
    from tercet.models.adapters.routers import RouterBase
    from tercet.models.errors import CheckpointError

    bases = {
        RouterBase(base.name, base.fingerprint)
        for name in adapters
        if name is not None
        for base in [read_adapter(root / name).base]
    }
    if len(bases) > 1:
        named = sorted(f"{base.name!r} ({base.fingerprint})" for base in bases)
        raise CheckpointError(f"adapters of several bases, {', '.join(named)}, cannot share a router")
    return next(iter(bases), None)


def _require_base(encoder: Encoder, adapters: tuple[str | None, ...]) -> None:
    """Raises AdapterUnusableError unless the adapters belong to the encoder that gives the vectors."""
    from tercet.models.errors import AdapterNotServedError

    for name in adapters:
        if name is not None:
            with suppress(AdapterNotServedError):  # without a graph for this engine it still belongs to it
                encoder.adapter_info(name)


def _dense(encoder: Encoder, path: Path) -> Float32:
    """Dense vectors float32[N, D] of the documents of a file by the base encoder."""
    import numpy as np

    from tercet.models.encoder import encode
    from tercet.models.errors import UnsupportedError
    from tercet.training.data.documents import read_texts

    if "dense" not in encoder.info.sides:
        raise UnsupportedError(f"{encoder.info.name} has no dense side, which routers of this kind choose by")
    texts = [f"{text.title}\n{text.text}" if text.title else text.text for text in read_texts(path)]
    parts = [np.zeros((0, encoder.info.dense_dimension), np.float32)]
    for start in range(0, len(texts), SLICE_TEXTS):
        dense = encode(encoder, texts[start : start + SLICE_TEXTS], outputs=["dense"]).dense
        assert dense is not None  # noqa: S101 - it was asked for
        parts.append(dense)
    return np.concatenate(parts)


def _tell(output: Path, router: Router) -> None:
    error_console().print(
        f"router {output.name} of kind {router.kind} written to {output}",
        markup=False,
        soft_wrap=True,
    )


def _report(router: Router, report: RouterReport, *, as_json: bool) -> None:
    names = router.settings.adapters
    if as_json:
        pairs = zip(names, report.accuracies, strict=True)
        accuracies = [{"adapter": name, "accuracy": accuracy} for name, accuracy in pairs]
        counts = {"learned": report.learned, "held_out": report.held_out}
        print_json({"accuracy": report.accuracy, "accuracies": accuracies, **counts})
        return
    table = Table(box=None, padding=(0, 2))
    table.add_column("adapter")
    table.add_column("accuracy", justify="right")
    for name, accuracy in (*zip(names, report.accuracies, strict=True), ("mean", report.accuracy)):
        table.add_row(name or "the base", f"{accuracy:.3f}")
    console().print(table)
    console().print(f"on {report.held_out:,} texts held out; learned from {report.learned:,}")
