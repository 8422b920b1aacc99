"""What does a router that learns together with its modules bring, beside one adapter and an average of two?

Two domains, Microsoft's documentation and abstracts of papers. Of each seed there is a LoRA adapter of each
domain and their average, one adapter of both, and modules with a router, all of `minilm-m3`. An adapter of
both and the modules see as many steps as the two others together. Queries that no run has seen search the
documents of their domain, and those of both in one collection; every document is scored. Differences of
nDCG@10 of the sum, from the best adapter of one domain and from the average, have standard errors paired over
the queries, each averaged over the seeds first. What is done is passed over, so that a run can be stopped.

Run: python -m benchmarks.routing [--quick] [--seeds N] [--data FOLDER] [--work FOLDER]
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.by_query import ByQuery, compared, kept_runs, means, ndcg_by_query, print_compared
from benchmarks.recording import ROOT, dated, machine, write

Values = dict[str, Any]
BOTH = "both"
AVERAGE = "average"
GATE = "gate, fitted after"
STEPS, PAIRS = 120, 3000  # of a run, for each domain
QUICK_SHARE = 0.015  # of steps, pairs, queries and documents


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain's pairs, by the lines of its file that are trained on and tested on, from the first up to the
    second; documents: passages of the lines after those, which are found but never right.
    """

    path: str
    title: str
    trained: tuple[int, int]
    tested: tuple[int, int]
    documents: int = 1500


DOMAINS = {
    "documentation": Domain("train/msdocs-en.jsonl.gz", "Microsoft documentation", (1, 7000), (7001, 7601)),
    "papers": Domain("train/acl-anthology.jsonl.gz", "ACL Anthology, 2021", (8600, 13400), (13401, 14001)),
}
# What is trained: domains, and what `[adapter]` has beside its kind.
RUNS: dict[str, tuple[tuple[str, ...], Values]] = {
    **{domain: ((domain,), {}) for domain in DOMAINS},
    "one of both": (tuple(DOMAINS), {}),
    "learned, 1 of 4": (tuple(DOMAINS), {"routing": {"modules": 4, "top": 1}}),
    "learned, 2 of 4": (tuple(DOMAINS), {"routing": {"modules": 4, "top": 2}}),
    "learned, 2 of 4, not balanced": (tuple(DOMAINS), {"routing": {"modules": 4, "top": 2, "balance": 0.0}}),
}


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
        "data": {"query_tokens": 64, "passage_tokens": 128, "sources": sources},
        "batches": {"groups": [{"tokens": 128, "batch": 16}], "negatives": 1, "sub_batch_tokens": 4096},
        "mining": {"last": 20},
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


def write_collections(data: Path, work: Path, share: float) -> None:
    """BEIR folders of both domains and of the two together. A passage that several queries share is one."""
    corpora: dict[str, tuple[list[str], list[str], list[str]]] = {BOTH: ([], [], [])}
    for name, domain in DOMAINS.items():
        first, stop = domain.tested
        tested = pairs_of(data, domain, first, first + round(share * (stop - first)))
        more = pairs_of(data, domain, stop, stop + round(share * domain.documents))
        ids: dict[str, str] = {}
        for pair in (*tested, *more):
            ids.setdefault(pair["pos"][0], f"{name}-{len(ids)}")
        corpora[name] = (
            [json.dumps({"_id": id, "title": "", "text": text}) for text, id in ids.items()],
            [json.dumps({"_id": f"{name}-{row}", "text": pair["query"]}) for row, pair in enumerate(tested)],
            [f"{name}-{row}\t{ids[pair['pos'][0]]}\t1" for row, pair in enumerate(tested)],
        )
        for lines, own in zip(corpora[BOTH], corpora[name], strict=True):
            lines.extend(own)
        trained = pairs_of(data, domain, *domain.trained)[: round(share * 1000)]
        texts = [" ".join(pair["pos"][0].split()) for pair in trained]
        (work / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    for name, (corpus, queries, qrels) in corpora.items():
        folder = work / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n", encoding="utf-8")
        (folder / "queries.jsonl").write_text("\n".join(queries) + "\n", encoding="utf-8")
        judgments = "\n".join(["query-id\tcorpus-id\tscore", *qrels])
        (folder / "qrels" / "test.tsv").write_text(f"{judgments}\n", encoding="utf-8")


def train(data: Path, work: Path, adapters: Path, seed: int, share: float) -> None:
    """Every adapter and router of a seed, as far as it is not there."""
    from tercet.models.adapters.files import is_adapter, read_adapter, write_adapter
    from tercet.models.adapters.merging import merge_adapters
    from tercet.models.adapters.router_files import write_router
    from tercet.models.adapters.routers import GateSettings, RouterBase
    from tercet.models.encoder import encode
    from tercet.models.loader import load_encoder
    from tercet.training.routers import learn_router
    from tercet.training.run import run_training
    from tercet.training.settings.reading import settings_from

    for name in RUNS:
        output = adapters / folder_name(name)
        if not (output / "README.md").exists():  # which is written last
            print(f"seed {seed}: {name}", flush=True)
            run_training(settings_from(settings(name, seed, share)), data, output, lambda line: None)
    domains = tuple(DOMAINS)
    if not is_adapter(adapters / AVERAGE):
        merged = merge_adapters([read_adapter(adapters / name) for name in domains], "average")
        write_adapter(adapters / AVERAGE, merged)
    encoder = load_encoder("minilm-m3", "torch")
    base = read_adapter(adapters / domains[0]).base
    texts = [(work / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in domains]
    vectors = [encode(encoder, own, outputs=["dense"]).dense for own in texts]
    groups = [dense for dense in vectors if dense is not None]
    router, _ = learn_router(GateSettings(domains), RouterBase(base.name, base.fingerprint), groups)
    write_router(adapters / folder_name(GATE), router)


def ndcg_with(folder: Path, adapters: Path, name: str | None, kept: Path) -> ByQuery:
    """nDCG@10 of the sum for each query, through an adapter or router; read where it was measured before."""
    from tercet.models.encoder import with_adapter
    from tercet.models.loader import load_encoder

    run = kept / "sum.run"
    if not run.exists():
        kept_runs(folder, with_adapter(load_encoder("minilm-m3", "torch", adapters=adapters), name), kept)
    return ndcg_by_query(folder, run)


def table(found: Mapping[str, list[ByQuery]]) -> Values:
    """Of each variant the mean by seed, and its differences. found: figures of a collection by seed."""
    best = max(DOMAINS, key=lambda name: float(means(found[name])["mean"]))
    return {"best single": best, "variants": compared(found, {"best single": best, AVERAGE: AVERAGE})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it works")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--work", type=Path, default=Path("trained") / "routing")
    asked = parser.parse_args()
    before = machine()
    work = (asked.work / "quick" if asked.quick else asked.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    share = QUICK_SHARE if asked.quick else 1.0
    write_collections(asked.data, work, share)
    seeds = range(1, asked.seeds + 1)
    for seed in seeds:
        train(asked.data, work, work / f"adapters-{seed}", seed, share)
    variants = {"base": None, **{name: folder_name(name) for name in (*RUNS, AVERAGE, GATE)}}
    collections: Values = {}
    for collection in (*DOMAINS, BOTH):
        found = {
            variant: [
                ndcg_with(
                    work / collection,
                    work / f"adapters-{seed}",
                    name,
                    work / (f"{name}-{seed}-{collection}" if name else f"base-{collection}"),
                )
                for seed in seeds
            ]
            for variant, name in variants.items()
        }
        collections[collection] = table(found)
        best = collections[collection]["best single"]
        print_compared(f"{collection}; the best single is {best}", collections[collection]["variants"])
    if not asked.quick:
        write("routing", dated({"seeds": asked.seeds, "collections": collections}, before))


if __name__ == "__main__":
    main()
