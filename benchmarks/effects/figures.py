"""nDCG@10 of a checkpoint by query, and differences of two runs paired over the queries."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tercet.evaluation.beir import Dataset, read_dataset

SIDES = ("dense", "sparse", "colbert", "sum")
CLS = "zero-shot CLS"
Figures = dict[str, dict[str, dict[str, float]]]
"""nDCG@10 by collection, by side, by query."""


def by_query(dataset: Dataset, rankings: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """nDCG@10 of each judged query. rankings: document ids by query, best first."""
    import ir_measures

    judgments = [
        ir_measures.Qrel(query, document, grade)
        for query, grades in dataset.qrels.items()
        for document, grade in grades.items()
    ]
    run = [
        ir_measures.ScoredDoc(query, document, -float(rank))
        for query, documents in rankings.items()
        for rank, document in enumerate(documents)
    ]
    found = ir_measures.iter_calc([ir_measures.nDCG @ 10], judgments, run)
    return dict(sorted((metric.query_id, float(metric.value)) for metric in found))


def measured(checkpoint: Path, adapter: Path | None, data: Path) -> dict[str, dict[str, float]]:
    """By side and query, every document of the collection `data` scored."""
    from tercet.evaluation.run import DEFAULT_CODEC, PLAIN_SUM, rank_queries
    from tercet.index.collection import Collection
    from tercet.ingest.build import build_collection
    from tercet.ingest.document_encoders import LocalDocuments
    from tercet.models.encoder import with_adapter
    from tercet.models.loader import load_encoder

    encoder = load_encoder(str(checkpoint), "torch", adapters=None if adapter is None else adapter.parent)
    if adapter is not None:
        encoder = with_adapter(encoder, adapter.name)
    dataset = read_dataset(data)
    with tempfile.TemporaryDirectory() as scratch:
        build_collection(LocalDocuments(encoder), Path(scratch), "effects", data, token_codec=DEFAULT_CODEC)
        snapshot = Collection.open(Path(scratch), "effects").snapshot()
        rankings = rank_queries(dataset, encoder, snapshot, PLAIN_SUM, None)
        snapshot.close()
    return {side: by_query(dataset, rankings[side]) for side in SIDES}


def zero_shot(checkpoint: Path, length: int, data: Path) -> dict[str, float]:
    """By query, of the normalized CLS of a body that has no heads; texts are cut at `length` tokens."""
    import torch

    from tercet.models.checkpoint import EncodingSettings, hidden_size
    from tercet.models.heads import Heads
    from tercet.models.representations import TokenBatch
    from tercet.models.tokenizer import Tokenizer
    from tercet.models.torch_encoder import EncoderModel, load_body
    from tercet.training.m3.text_encoder import TextEncoder

    encoding = EncodingSettings(pooling="cls", max_length=length)
    tokenizer = Tokenizer.load(checkpoint, encoding)
    model = EncoderModel(load_body(checkpoint), Heads(hidden_size(checkpoint), 1, encoding)).eval()
    encoder = TextEncoder(model, tokenizer, 8192, "float32", "cpu")

    def dense(texts: TokenBatch) -> torch.Tensor:
        parts, order = encoder.parts(texts)
        with torch.inference_mode():
            return torch.cat([encoder.encode(part).dense for part in parts])[order]

    dataset = read_dataset(data)
    documents = dense(tokenizer.tokenize([each.encoded_text for each in dataset.documents], "document"))
    queries = dense(tokenizer.tokenize(list(dataset.queries.values()), "query"))
    best = (queries @ documents.T).topk(min(10, len(documents)), dim=1).indices.tolist()
    rankings = {
        query: [dataset.documents[place].id for place in places]
        for query, places in zip(dataset.queries, best, strict=True)
    }
    return by_query(dataset, rankings)


def long_texts(checkpoint: Path, mcls_every: int | None, data: Path) -> dict[str, dict[str, float]]:
    """`measured` with up to 512 tokens of a document, and a CLS every so many."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "checkpoint"
        shutil.copytree(checkpoint, folder, ignore=shutil.ignore_patterns("run"))
        settings = json.loads((folder / "tercet.json").read_text())
        (folder / "tercet.json").write_text(
            json.dumps({**settings, "max_length": 512, "mcls_every": mcls_every})
        )
        return measured(folder, None, data)


def mean(figures: Figures, side: str) -> float:
    """Over the queries of each collection, then over the collections."""
    return float(np.mean([np.mean(list(sides[side].values())) for sides in figures.values()]))


def paired(runs: Sequence[Figures], controls: Sequence[Figures], side: str) -> tuple[float, float]:
    """How far the runs are above the controls, and the standard error of that over the queries.

    One run and one control a seed. Of each query the differences are averaged over the seeds first, so that
    the error is that of another sample of queries; collections count alike.
    """
    means, variances = [], []
    for collection, sides in runs[0].items():
        queries = list(sides[side])
        differences = np.mean(
            [
                [run[collection][side][query] - control[collection][side][query] for query in queries]
                for run, control in zip(runs, controls, strict=True)
            ],
            axis=0,
        )
        means.append(differences.mean())
        variances.append(differences.var(ddof=1) / len(differences))
    return float(np.mean(means)), float(np.sqrt(np.sum(variances)) / len(means))
