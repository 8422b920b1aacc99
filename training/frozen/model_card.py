"""The model card of a fitted checkpoint: what it was made from, how, and what was measured meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from training.frozen.config import FitSettings
from training.frozen.fit_report import FitReport

CARD = """# {name}

{base} (licence {base_licence}) with two heads trained on top of its frozen body:
lexical weights ({width} → 1) and token vectors ({width} → {colbert}).
The dense vector is that of the base model, untouched.
`model.safetensors` of the base has sha256 `{sha256}`.

Pooling {pooling}, at most {max_length} tokens.

## Training data

{sources}

Texts were cut at {query_tokens} tokens (queries) and {passage_tokens} tokens (passages). Pairs whose passage
occurs inside a document of these collections were left out: {held_out}.

## Training

Contrastive loss of the lexical score, of the token-vector score and of the plain sum of all three scores, and
distillation of the first two from the sum (BGE-M3, arXiv 2402.03216), with in-batch negatives.
Weights: {losses}.
Start: lexical weights near {idf_scale} · idf, token vectors a random
projection of the hidden states, whitened by the power {whitening:g}.
{optimization}. Seed {seed}. {fits}
The epoch kept, of {epochs}, is the best on the held-out pairs:

{development}

`docs/training.md` has the commands that make this checkpoint again,
`docs/evaluation.md` what it was measured at.
"""


def model_card(settings: FitSettings, reports: Sequence[FitReport]) -> str:
    """The card in Markdown, from the report of each fit; it names every source with its licence."""
    first = reports[0]
    losses = settings.losses
    optimization = settings.optimization
    return CARD.format(
        name=settings.name,
        base=settings.base.name,
        base_licence=settings.base.licence,
        width=first.width,
        colbert=settings.encoder.colbert_dimension,
        sha256=settings.base.sha256,
        pooling=settings.encoder.pooling,
        max_length=settings.encoder.max_length,
        sources=source_table(settings, reports),
        query_tokens=settings.data.query_tokens,
        passage_tokens=settings.data.passage_tokens,
        held_out=", ".join(settings.data.held_out) or "none",
        losses=", ".join(
            f"{name} {getattr(losses, name):g}"
            for name in ("sparse", "colbert", "sum", "distill_sparse", "distill_colbert", "temperature")
        ),
        idf_scale=settings.initial.idf_scale,
        whitening=settings.initial.whitening,
        optimization=(
            f"AdamW, learning rate {optimization.learning_rate:g}, {optimization.batch_pairs} pairs a batch, "
            f"warm-up over {optimization.warmup:.0%} of the steps, then linear decay"
        ),
        seed=settings.seed,
        fits="One fit." if len(reports) == 1 else f"The heads are the mean of {len(reports)} fits.",
        epochs=optimization.epochs,
        development=development_table(reports),
    )


def source_table(settings: FitSettings, reports: Sequence[FitReport]) -> str:
    """Sources with licence and pairs; those that only chose the epoch say so."""
    rows = [
        "| source | licence | trained on, by fit | joined, by fit | neighbours together | held out |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for place, source in enumerate(settings.data.sources):
        pairs = ", ".join(str(report.training_pairs[place]) for report in reports)
        trained = pairs if source.train else "none: chooses the epoch only"
        joined = ", ".join(f"up to {count}" for count in source.join_up_to if count > 1)
        together = str(source.neighbours) if source.train else ""
        cells = (source.title, source.licence, trained, joined, together, str(source.development_pairs))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def development_table(reports: Sequence[FitReport]) -> str:
    """nDCG@10 on the held-out pairs before training and at the epoch kept, by fit."""
    rows = [
        "| held-out pairs of | fit | epoch | dense | sparse | colbert | sum |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for fit, report in enumerate(reports, start=1):
        for epoch in dict.fromkeys((report.epochs[0].number, report.best.number)):
            for source, sides in report.epochs[epoch].development.items():
                values = " | ".join(f"{sides[side]:.4f}" for side in ("dense", "sparse", "colbert", "sum"))
                rows.append(f"| {source} | {fit} | {epoch} | {values} |")
    return "\n".join(rows)
