"""What does a router that learns together with its modules bring, beside one adapter and an average of two?

Two domains, Microsoft's documentation and abstracts of papers. Of each seed there is a LoRA adapter of each
domain and their average, one adapter of both, and modules with a router, all of `minilm-m3`. An adapter of
both and the modules see as many steps as the two others together. Queries that no run has seen search the
documents of both domains in one collection, every document scored; the figures of a domain are of the same
rankings without the other's documents. Passages are their first words, so that all of it takes an hour on a
slow core. Differences of nDCG@10 of the sum, from the best adapter of one domain and from the average, have
standard errors paired over the queries, each averaged over the seeds first. What is done is passed over, so
that a run can be stopped.

Run: python -m benchmarks.routing [VARIANT …] [--quick] [--seeds N] [--data FOLDER] [--work FOLDER]
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.by_query import ByQuery, compared, kept_runs, means, ndcg_by_query, print_compared
from benchmarks.recording import DATA, dated, machine, write

Values = dict[str, Any]
BOTH = "both"
AVERAGE = "average"
GATE = "gate, fitted after"
STEPS, PAIRS = 40, 3000  # of a run, for each domain
QUICK_SHARE = 0.05  # of steps, pairs, queries and documents
ALL = 10_000  # more documents than there are
GATE_TEXTS = 100  # of each domain
TOKENS, WORDS = 64, 40  # of a passage, in training and in the collection


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain's pairs, by the lines of its file that are trained on and tested on, from the first up to the
    second; documents: passages of the lines after those, which are found but never right.
    """

    path: str
    title: str
    trained: tuple[int, int]
    tested: tuple[int, int]
    documents: int = 350


DOMAINS = {
    "documentation": Domain("train/msdocs-en.jsonl.gz", "Microsoft documentation", (1, 7000), (7001, 7151)),
    "papers": Domain("train/acl-anthology.jsonl.gz", "ACL Anthology, 2021", (8600, 13400), (13401, 13551)),
}
# What is trained: domains, and what `[adapter]` has beside its kind.
RUNS: dict[str, tuple[tuple[str, ...], Values]] = {
    **{domain: ((domain,), {}) for domain in DOMAINS},
    "one of both": (tuple(DOMAINS), {}),
    "learned, 1 of 4": (tuple(DOMAINS), {"routing": {"modules": 4, "top": 1}}),
    "learned, 2 of 4": (tuple(DOMAINS), {"routing": {"modules": 4, "top": 2}}),
    "learned, 2 of 4, not balanced": (tuple(DOMAINS), {"routing": {"modules": 4, "top": 2, "balance": 0.0}}),
}
NEEDED = (*DOMAINS, AVERAGE)  # what all others are compared with
VARIANTS = (*RUNS, AVERAGE, GATE)


def settings(name: str, seed: int, share: float) -> Values:
    """The training run of a variant. share: of the steps and pairs of each domain."""
    domains, adapter = RUNS[name]
    sources = [
        {
            "path": DOMAINS[domain].path,
            "title": DOMAINS[domain].title,
            "licence": "CC BY 4.0",
            "lines": list(DOMAINS[domain].trained),
            "most": round(share * PAIRS),
        }
        for domain in domains
    ]
    return {
        "name": folder_name(name),
        "stage": "finetune",
        "seed": seed,
        "base": {"checkpoint": "minilm-m3", "name": "minilm-m3", "licence": "Apache-2.0"},
        "adapter": {"kind": "lora", **adapter},
        "data": {"query_tokens": 32, "passage_tokens": TOKENS, "sources": sources},
        # Neighbours in a file are alike, so that each is a hard negative of the others.
        "batches": {"groups": [{"tokens": TOKENS, "batch": 8}], "negatives": 0, "neighbours": 8},
        "optimization": {
            "steps": round(share * STEPS) * len(domains),
            "learning_rate": 1e-3,
            "heads_learning_rate": 3e-4,
            "dropout": 0.0,
        },
    }


def folder_name(variant: str) -> str:
    """The name of an adapter or router for a variant."""
    return variant.replace(",", "").replace(" ", "-")


def pairs_of(data: Path, domain: Domain, first: int, stop: int) -> list[Values]:
    """The pairs of a domain's lines, counted from 1."""
    with gzip.open(data / domain.path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in islice(file, first - 1, stop - 1)]


def first_words(text: str) -> str:
    """A passage as it is searched, on one line."""
    return " ".join(text.split()[:WORDS])


def write_collection(data: Path, folder: Path, share: float) -> None:
    """The BEIR folder of both domains. A passage that several queries share is one."""
    corpus, queries, judgments = [], [], ["query-id\tcorpus-id\tscore"]
    for name, domain in DOMAINS.items():
        first, stop = domain.tested
        tested = pairs_of(data, domain, first, first + round(share * (stop - first)))
        more = pairs_of(data, domain, stop, stop + round(share * domain.documents))
        ids: dict[str, str] = {}
        for pair in (*tested, *more):
            ids.setdefault(first_words(pair["pos"][0]), f"{name}-{len(ids)}")
        corpus += [json.dumps({"_id": id, "title": "", "text": text}) for text, id in ids.items()]
        for row, pair in enumerate(tested):
            queries.append(json.dumps({"_id": f"{name}-{row}", "text": pair["query"]}))
            judgments.append(f"{name}-{row}\t{ids[first_words(pair['pos'][0])]}\t1")
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    files = {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": judgments}
    for path, lines in files.items():
        (folder / path).write_text("\n".join([*lines, ""]), encoding="utf-8")


def train(data: Path, adapters: Path, names: Collection[str], seed: int, share: float) -> None:
    """The adapters and routers of a seed that are named or needed, as far as they are not there."""
    import torch

    from tercet.models.adapters.files import is_adapter, read_adapter, write_adapter
    from tercet.models.adapters.merging import merge_adapters
    from tercet.models.adapters.router_files import write_router
    from tercet.models.adapters.routers import GateSettings, RouterBase
    from tercet.models.encoder import encode
    from tercet.models.loader import load_encoder
    from tercet.training.routers import learn_router
    from tercet.training.run import run_training
    from tercet.training.settings.reading import settings_from

    for name in [name for name in RUNS if name in names or name in DOMAINS]:
        output = adapters / folder_name(name)
        if not (output / "README.md").exists():  # which is written last
            print(f"seed {seed}: {name}", flush=True)
            given = settings_from(settings(name, seed, share))
            run_training(given, data, output, lambda line: None, threads=torch.get_num_threads())
    domains = tuple(DOMAINS)
    if not is_adapter(adapters / AVERAGE):
        merged = merge_adapters([read_adapter(adapters / name) for name in domains], "average")
        write_adapter(adapters / AVERAGE, merged)
    if GATE not in names:
        return
    encoder = load_encoder("minilm-m3", "torch")
    base = read_adapter(adapters / domains[0]).base
    starts = [(domain, domain.trained[0]) for domain in DOMAINS.values()]
    texts = [
        [first_words(pair["pos"][0]) for pair in pairs_of(data, domain, first, first + GATE_TEXTS)]
        for domain, first in starts
    ]
    vectors = [encode(encoder, own, outputs=["dense"]).dense for own in texts]
    groups = [dense for dense in vectors if dense is not None]
    router, _ = learn_router(GateSettings(domains), RouterBase(base.name, base.fingerprint), groups)
    write_router(adapters / folder_name(GATE), router)


def ndcg_with(folder: Path, adapters: Path, name: str | None, kept: Path) -> dict[str, ByQuery]:
    """nDCG@10 of the sum for each query, through an adapter or router, in both domains' collection and in the
    query's own domain; read where it was measured before.
    """
    from tercet.evaluation.results import Measuring
    from tercet.models.encoder import with_adapter
    from tercet.models.loader import load_encoder

    run = kept / "sum.run"
    if not run.exists():
        encoder = with_adapter(load_encoder("minilm-m3", "torch", adapters=adapters), name)
        kept_runs(folder, encoder, kept, Measuring(depth=ALL))
    own = kept / "own.run"
    lines = [line.split(maxsplit=3) for line in run.read_text(encoding="utf-8").splitlines()]
    same = [line for line in lines if domain_of(line[0]) == domain_of(line[2])]
    own.write_text("\n".join([*map(" ".join, same), ""]), encoding="utf-8")
    in_domain = ndcg_by_query(folder, own)
    by_domain = {
        domain: {query: value for query, value in in_domain.items() if domain_of(query) == domain}
        for domain in DOMAINS
    }
    return {**by_domain, BOTH: ndcg_by_query(folder, run)}


def domain_of(id: str) -> str:
    """The domain of a query or document."""
    return id.rpartition("-")[0]


def table(found: Mapping[str, list[ByQuery]]) -> Values:
    """Of each variant the mean by seed, and its differences. found: figures of a collection by seed."""
    best = max(DOMAINS, key=lambda name: float(means(found[name])["mean"]))
    return {"best single": best, "variants": compared(found, {"best single": best, AVERAGE: AVERAGE})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("variants", nargs="*", choices=[[], *VARIANTS], metavar="VARIANT", help="default all")
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it works")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path("trained") / "routing")
    asked = parser.parse_args()
    before = machine()
    work = (asked.work / "quick" if asked.quick else asked.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    share = QUICK_SHARE if asked.quick else 1.0
    write_collection(asked.data, work / BOTH, share)
    names = [name for name in VARIANTS if name in (asked.variants or VARIANTS) or name in NEEDED]
    found: dict[str, list[dict[str, ByQuery]]] = {name: [] for name in ("base", *names)}
    for seed in range(1, asked.seeds + 1):
        adapters = work / f"adapters-{seed}"
        train(asked.data, adapters, names, seed, share)
        found["base"].append(ndcg_with(work / BOTH, adapters, None, work / "base"))
        for name in names:
            kept = work / f"{folder_name(name)}-{seed}"
            found[name].append(ndcg_with(work / BOTH, adapters, folder_name(name), kept))
    collections = {
        collection: table({name: [run[collection] for run in runs] for name, runs in found.items()})
        for collection in (*DOMAINS, BOTH)
    }
    for collection, figures in collections.items():
        print_compared(f"{collection}; the best single is {figures['best single']}", figures["variants"])
    if not asked.quick:
        write("routing", dated({"seeds": asked.seeds, "collections": collections}, before))


if __name__ == "__main__":
    main()
