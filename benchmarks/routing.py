"""What does it bring to choose an adapter by text? Fixed, hard and soft routing on two domains.

usage: python -m benchmarks.routing [--quick] [--work FOLDER]

Two LoRA adapters of the embedded checkpoint learn from Microsoft's documentation and from abstracts of
papers. Queries and documents that neither has seen make a collection of each domain and one of both. Measured
are the base, each adapter for all texts, each domain's own (fixed), routers that take the likelier one for
each text (hard), and one that mixes both by weight (soft). Every document is scored; differences from the
base have standard errors paired over the queries. Runs that are done are passed over; --quick makes a few
steps and writes to the work folder alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchmarks.effects.figures import SIDES, Figures, mean, measured, paired
from benchmarks.training_effects import DATA, RESULTS, machine, once

CHECKPOINT = Path(__file__).resolve().parent.parent / "checkpoints" / "minilm-m3"
BASE = {"checkpoint": "minilm-m3", "name": "minilm-m3", "licence": "Apache-2.0"}


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain's pairs, by the lines of its file that are trained on and tested on, from the first up to the
    second; documents: passages of the lines after those, which are found but never right.
    """

    path: str
    title: str
    licence: str
    trained: tuple[int, int]
    tested: tuple[int, int]
    documents: int


DOMAINS = {
    "documentation": Domain(
        "train/msdocs-en.jsonl.gz", "Microsoft documentation", "CC BY 4.0", (1, 7000), (7001, 7601), 1500
    ),
    "papers": Domain(
        "train/acl-anthology.jsonl.gz",
        "ACL Anthology, 2021",
        "CC BY 4.0",
        (8600, 13400),
        (13401, 14001),
        1500,
    ),
}
BOTH = "both"
# What texts go through, by the collection that is searched; None is the base.
ROUTES: dict[str, dict[str, str | None]] = {
    "base": dict.fromkeys((*DOMAINS, BOTH)),
    **{f"{adapter} for all": dict.fromkeys((*DOMAINS, BOTH), adapter) for adapter in DOMAINS},
    "fixed: the domain's own": {name: name for name in DOMAINS},
    "hard: gate": dict.fromkeys((*DOMAINS, BOTH), "gate"),
    "hard: centroid": dict.fromkeys((*DOMAINS, BOTH), "centroid"),
    "soft: gate": dict.fromkeys((*DOMAINS, BOTH), "soft"),
}


def settings(name: str, steps: int, pairs: int) -> dict[str, Any]:
    """The run of one adapter."""
    domain = DOMAINS[name]
    source = {
        "path": domain.path,
        "title": domain.title,
        "licence": domain.licence,
        "lines": list(domain.trained),
        "most": pairs,
    }
    return {
        "name": name,
        "stage": "finetune",
        "base": BASE,
        "adapter": {"kind": "lora"},
        "data": {"query_tokens": 64, "passage_tokens": 128, "sources": [source]},
        "batches": {"groups": [{"tokens": 128, "batch": 16}], "negatives": 1, "sub_batch_tokens": 4096},
        "mining": {"last": 20},
        "optimization": {
            "steps": steps,
            "learning_rate": 1e-3,
            "heads_learning_rate": 3e-4,
            "dropout": 0.0,
            "precision": "bfloat16",
        },
    }


def pairs_of(path: str, first: int, stop: int) -> list[dict[str, Any]]:
    """The pairs of lines, counted from 1."""
    with gzip.open(DATA / path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in islice(file, first - 1, stop - 1)]


def write_collections(work: Path, scale: float) -> None:
    """BEIR folders of both domains and of the two together. A passage that several queries share is one."""
    lines: dict[str, tuple[list[str], list[str], list[str]]] = {}
    for name, domain in DOMAINS.items():
        first, stop = domain.tested
        tested = pairs_of(domain.path, first, first + round(scale * (stop - first)))
        more = pairs_of(domain.path, stop, stop + round(scale * domain.documents))
        ids: dict[str, str] = {}
        for pair in (*tested, *more):
            ids.setdefault(pair["pos"][0], f"{name}-{len(ids)}")
        corpus = [json.dumps({"_id": id, "title": "", "text": text}) for text, id in ids.items()]
        queries = [json.dumps({"_id": f"{name}-{n}", "text": pair["query"]}) for n, pair in enumerate(tested)]
        qrels = [f"{name}-{n}\t{ids[pair['pos'][0]]}\t1" for n, pair in enumerate(tested)]
        lines[name] = corpus, queries, qrels
        (work / f"{name}.txt").write_text(
            "\n".join(
                " ".join(pair["pos"][0].split()) for pair in pairs_of(domain.path, *domain.trained)[:1000]
            )
        )
    corpora, queries_of_all, qrels_of_all = zip(*lines.values(), strict=True)
    lines[BOTH] = [*chain(*corpora)], [*chain(*queries_of_all)], [*chain(*qrels_of_all)]
    for name, (corpus, queries, qrels) in lines.items():
        folder = work / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n", encoding="utf-8")
        (folder / "queries.jsonl").write_text("\n".join(queries) + "\n", encoding="utf-8")
        header = "query-id\tcorpus-id\tscore"
        (folder / "qrels" / "test.tsv").write_text("\n".join([header, *qrels]) + "\n", encoding="utf-8")


def learn_routers(work: Path) -> dict[str, float]:
    """Routers beside the adapters, by `tercet adapters route`; how often each is right on texts held out."""
    accuracies = {}
    texts = [f"{name}={work / name}.txt" for name in DOMAINS]
    for name, kind in (("gate", "gate"), ("centroid", "centroid"), ("soft", "soft")):
        command = [sys.executable, "-m", "tercet.cli.main", "adapters", "route", name, *texts, "--kind", kind]
        found = subprocess.run(
            [*command, "--adapters", str(work / "adapters"), "--json"], check=True, capture_output=True
        )
        accuracies[name] = json.loads(found.stdout)["accuracy"]
    return accuracies


def figures_of(route: dict[str, str | None], work: Path) -> Figures:
    """nDCG@10 by query on each collection that a route is for; what was measured before is read."""
    found: Figures = {}
    for collection, adapter in route.items():
        path = work / f"{collection}-{adapter or 'base'}.json"
        if not path.exists():
            folder = None if adapter is None else work / "adapters" / adapter
            path.write_text(json.dumps(measured(CHECKPOINT, folder, work / collection)))
        found[collection] = json.loads(path.read_text())
    return found


def summary(work: Path) -> dict[str, Any]:
    """Of each route and collection: figures by side; the sum's difference from the base, and its error."""
    base = figures_of(ROUTES["base"], work)
    table: dict[str, Any] = {}
    for name, route in ROUTES.items():
        print(name, flush=True)
        found = figures_of(route, work)
        table[name] = {}
        for collection, by_side in found.items():
            one: Figures = {collection: by_side}
            difference, error = paired([one], [{collection: base[collection]}], "sum")
            table[name][collection] = {
                **{side: round(mean(one, side), 4) for side in SIDES},
                "difference": round(difference, 4),
                "error": round(error, 4),
            }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it works")
    parser.add_argument("--work", type=Path, default=Path("trained") / "routing")
    asked = parser.parse_args()
    work = (asked.work / "quick" if asked.quick else asked.work).resolve()
    (work / "adapters").mkdir(parents=True, exist_ok=True)
    write_collections(work, 0.05 if asked.quick else 1.0)
    for name in DOMAINS:
        once(settings(name, *((2, 100) if asked.quick else (120, 2000))), work / "adapters" / name)
    accuracies = learn_routers(work)
    table = summary(work)
    record = {**machine(), "accuracy": accuracies, "routes": table}
    results = work if asked.quick else RESULTS.parent
    (results / "routing.json").write_text(json.dumps(record, indent=1) + "\n")
    print("routers are right on", {name: round(share, 3) for name, share in accuracies.items()})
    for name, collections in table.items():
        cells = (
            f"{collection} {cell['sum']:.4f} ({cell['difference']:+.4f} ± {cell['error']:.4f})"
            for collection, cell in collections.items()
        )
        print(f"  {name:26}", "  ".join(cells))


if __name__ == "__main__":
    main()
