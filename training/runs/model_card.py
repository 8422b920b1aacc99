"""The model card of a run: what the checkpoint was made from, how, and what was measured meanwhile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.training.runs.log import read_log
from tercet.training.settings.data import QueryData, QuerySource
from tercet.training.settings.run import FinetuneRun, PairRun, RunSettings

CARD_FILE = "README.md"
SIDES = ("dense", "sparse", "colbert", "sum")
ADAPTER = """{what} of kind {kind} for {base}{heads}, served beside it: see docs/adapters.md.{below}{fused}

"""
CARD = """# {name}

{adapter}Trained from {base} (licence {licence}) by `tercet train`, stage `{stage}`.

## Data

{sources}

Texts were cut at {cut}. What occurs
inside a document of these collections was left out: {held_out}.

## Run

{steps} steps, {tokens:,} tokens, {hours:.1f} hours of training{device}. {kept}{halfway}

{development}
{terms}
## Settings

```json
{settings}
```
"""


@dataclass(frozen=True, slots=True)
class SourceCount:
    """How much of a source was used: pairs or documents trained on, and pairs held out."""

    trained: int
    held_out: int


def write_card(
    folder: Path,
    settings: RunSettings,
    counts: Sequence[SourceCount],
    run: Path,
    device: str,
    kept_step: int | None,
    terms: Mapping[str, float],
) -> None:
    """Writes the card, in Markdown, from the settings and the run's log; every source with its licence.

    kept_step: the step whose weights were kept for their development figure, None without a development set.
    terms: factor of each term of the loss that scores pairs; none where no pairs are trained on.
    """
    lines = list(read_log(run))
    steps = [line for line in lines if "losses" in line]
    data = settings.data
    card = CARD.format(
        name=settings.name,
        adapter=adapter_lines(settings),
        base=settings.base.name,
        licence=settings.base.licence,
        stage=settings.stage,
        sources=source_table(settings, counts),
        cut=f"{data.query_tokens} tokens (queries) and {data.passage_tokens} tokens (passages)"
        if isinstance(data, QueryData)
        else f"{data.passage_tokens} tokens",
        held_out=", ".join(data.held_out) or "none",
        steps=len(steps),
        tokens=sum(line["tokens"] for line in steps),
        hours=sum(line["seconds"] for line in steps) / 3600,
        device=f" on {device}" if device else "",
        kept="The last weights are kept."
        if kept_step is None
        else f"The weights kept are those after step {kept_step}, the best on the held-out pairs (nDCG@10):"
        if kept_step
        else "No step improved on the held-out pairs (nDCG@10), so the weights are those before training:",
        halfway=halfway_line(settings),
        development="" if kept_step is None else development_table(lines, kept_step),
        terms=loss_lines(terms),
        settings=json.dumps(without_empty(settings.model_dump(mode="json")), indent=1, ensure_ascii=False),
    )
    (folder / CARD_FILE).write_text(card, encoding="utf-8")


def halfway_line(settings: RunSettings) -> str:
    """Where the written weights lie, if not where training ended."""
    if not isinstance(settings, FinetuneRun) or settings.halfway is None:
        return ""
    return (
        f" What is written lies {settings.halfway.share:g} of the way from the base to these, "
        "with heads fitted to its states."
    )


def loss_lines(terms: Mapping[str, float]) -> str:
    """Which terms the loss has, and which sides it does not train by themselves."""
    if not terms:
        return ""
    factors = ", ".join(f"`{name}` {factor:g}" for name, factor in terms.items())
    own = {side: {side, f"distill_{side}", f"teacher_{side}"} for side in SIDES[:-1]}
    left_out = [side for side, names in own.items() if not names & terms.keys()]
    alone = f" Without a loss or distillation of their own: {', '.join(left_out)}." if left_out else ""
    return f"\nFactors of the loss: {factors}.{alone}\n"


def adapter_lines(settings: RunSettings) -> str:
    """What an adapter is and needs; nothing for a checkpoint."""
    if not isinstance(settings, PairRun) or settings.adapter is None:
        return ""
    adapter = settings.adapter
    below = ", ".join(f"`{Path(folder).name}`" for folder in adapter.below)
    modules = () if adapter.fusion is None else adapter.fusion.modules
    fused = ", ".join(f"`{Path(folder).name}`" for folder in modules)
    routing = adapter.routing
    return ADAPTER.format(
        what="An adapter" if routing is None else f"A router among {routing.modules} adapters",
        kind=adapter.kind,
        base=settings.base.name,
        heads=" with heads of its own" if adapter.heads and settings.stage == "finetune" else "",
        below=f" It was trained on top of {below}: stack it on these." if below else "",
        fused=f" It holds copies of {fused}, which it attends over." if fused else "",
    )


def source_table(settings: RunSettings, counts: Sequence[SourceCount]) -> str:
    """Sources with licence and counts."""
    rows = ["| source | licence | trained on | held out |", "| --- | --- | ---: | ---: |"]
    for source, count in zip(settings.data.sources, counts, strict=True):
        trained = f"{count.trained:,} documents"
        if isinstance(source, QuerySource):
            unused = (
                "nothing: is scored only"
                if settings.stage == "score"
                else "nothing: chooses the weights only"
            )
            trained = f"{count.trained:,} pairs" if source.train else unused
        rows.append(f"| {source.title} | {source.licence} | {trained} | {count.held_out:,} |")
    return "\n".join(rows)


def development_table(lines: Sequence[Mapping[str, Any]], kept_step: int) -> str:
    """nDCG@10 on the held-out pairs before training and at the step kept."""
    rows = [
        "| held-out pairs of | step | dense | sparse | colbert | sum |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in lines:
        if "development" in line and line["step"] in (0, kept_step):
            for source, sides in line["development"].items():
                values = " | ".join(f"{sides[side]:.4f}" if side in sides else "" for side in SIDES)
                rows.append(f"| {source} | {line['step']} | {values} |")
    return "\n".join(rows)


def without_empty(values: Any) -> Any:
    """Settings that say something: without those left empty."""
    if isinstance(values, Mapping):
        return {k: without_empty(value) for k, value in values.items() if value not in (None, "", [])}
    return [without_empty(value) for value in values] if isinstance(values, list) else values
