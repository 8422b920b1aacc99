"""How fast is late interaction beside maxsim-cpu and fast-plaid, each in an environment of its own?

maxsim-cpu scores the 400 documents of 200 tokens of `late.py` against its queries, in float32; ours is the
time after retrieval of a search over them. fast-plaid searches real collections by late interaction alone,
with its defaults (codes of 4 bits); ours is a whole search with the weights 0, 0, 1 and default candidates,
by the default codec and by codes of 4 bits.
nDCG@10 is there, too, so that a faster answer that is worse shows. No time has the encoding in it.

Run: python -m benchmarks.late_peers PYTHON_OF_MAXSIM_CPU PYTHON_OF_FAST_PLAID [--sets NAME …] [--repeats 5]
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import late
from benchmarks.recording import ROOT, dated, peer_figures, write
from benchmarks.token_codecs import Encoded, codebook_of, encoded, filled
from tercet.evaluation.metrics import measure
from tercet.index.candidates import Weights
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.ingest.target import settings_for
from tercet.models.checkpoint import SHIPPED
from tercet.models.loader import load_encoder

LATE = Weights(0, 0, 1)


def beside_maxsim_cpu(python: str, dimension: int, repeats: int) -> dict[str, float | None]:
    """Milliseconds of the median query, None of a system that crashed."""
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((late.CLUSTERS, dimension)).astype(np.float32)
    documents = late.texts(generator, centres, late.DOCUMENTS, late.TOKENS)
    queries = late.asked(generator, documents)
    assert documents.colbert is not None
    assert queries.colbert is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.npz"
        np.savez(
            file,
            queries=queries.colbert.vectors.reshape(late.QUERIES, late.QUERY_TOKENS, dimension),
            documents=documents.colbert.vectors.reshape(late.DOCUMENTS, late.TOKENS, dimension)[
                : late.CANDIDATES
            ],
        )
        times: dict[str, float | None] = {"maxsim-cpu": None}
        try:
            times["maxsim-cpu"] = peer_figures(python, "maxsim_scores.py", file, repeats)["median_ms"]
        except subprocess.CalledProcessError as error:
            print(f"{dimension} values: maxsim-cpu ended with {error.returncode}", flush=True)
        for codec in ("int8", "residual1"):
            collection = late.built(Path(folder), codec, documents)
            times[codec] = float(np.median(late.timed(collection, queries, repeats + 1)))
    return times


def searched(
    folder: Path, codec: TokenCodec, found: Encoded, encoder: Any, repeats: int
) -> tuple[list[list[str]], list[float]]:
    """What each query finds by late interaction alone, and its fastest run's milliseconds."""
    chosen = {"token_codec": codec, "codebook": codebook_of(found, RESIDUAL_BITS[codec], 0)}
    settings = settings_for(codec, encoder.info, chosen)
    snapshot = filled(folder, settings, found.dataset, found.documents).snapshot()
    rankings, times = [], []
    for row in range(len(found.queries)):
        query, runs = found.query(row), []
        for _ in range(repeats):
            started = time.perf_counter()
            hits = snapshot.search(query, top_k=20, weights=LATE, contents=False).hits
            runs.append(1000 * (time.perf_counter() - started))
        times.append(min(runs))
        rankings.append([hit.document.id for hit in hits])
    return rankings, times


def beside_fast_plaid(python: str, found: Encoded, encoder: Any, repeats: int) -> dict[str, Any]:
    """Milliseconds of the median query and nDCG@10 of each."""
    queries, tokens = found.queries.colbert, found.tokens
    assert queries is not None
    query_ids = list(found.dataset.queries)[: len(found.queries)]
    qrels = {query_id: found.dataset.qrels[query_id] for query_id in query_ids}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.npz"
        np.savez(
            file,
            vectors=tokens.vectors,
            offsets=tokens.offsets,
            query_vectors=queries.vectors,
            query_offsets=queries.offsets,
        )
        theirs = peer_figures(python, "plaid_search.py", file, Path(folder) / "plaid", repeats)
        found_by: dict[str, tuple[list[list[str]], list[float]]] = {
            "fast-plaid": ([[found.ids[row] for row in each] for each in theirs["found"]], theirs["times"])
        }
        codecs: tuple[TokenCodec, ...] = ("residual1", "residual4")
        for codec in codecs:
            found_by[codec] = searched(Path(folder), codec, found, encoder, repeats)
    return {
        name: {
            "median_ms": float(np.median(each)),
            "nDCG@10": measure(qrels, dict(zip(query_ids, ids, strict=True)))["nDCG@10"],
        }
        for name, (ids, each) in found_by.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maxsim_cpu", metavar="PYTHON_OF_MAXSIM_CPU")
    parser.add_argument("fast_plaid", metavar="PYTHON_OF_FAST_PLAID")
    parser.add_argument("--sets", nargs="+", default=("cranfield", "npl"))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    results: dict[str, Any] = {"maxsim-cpu": {}, "fast-plaid": {}}
    for dimension in late.BARS:
        times = beside_maxsim_cpu(arguments.maxsim_cpu, dimension, arguments.repeats)
        results["maxsim-cpu"][str(dimension)] = times
        shown = ", ".join(f"{name} {each:.1f} ms" for name, each in times.items() if each is not None)
        print(f"{dimension} values: {shown}", flush=True)
    encoder = load_encoder(str(ROOT / "checkpoints" / SHIPPED[0]))
    for name in arguments.sets:
        found = encoded(name, encoder, 100)
        results["fast-plaid"][name] = beside_fast_plaid(
            arguments.fast_plaid, found, encoder, arguments.repeats
        )
        for system, each in results["fast-plaid"][name].items():
            print(
                f"{name:>10} {system:>10} {each['median_ms']:7.2f} ms, nDCG@10 {each['nDCG@10']:.4f}",
                flush=True,
            )
    write("late_peers", dated(results))


if __name__ == "__main__":
    main()
