"""Vectors and weights of texts by sentence-transformers, for tests/endurance/peers/families.py.

usage: families_encode.py CHECKPOINT TEXTS.json VECTORS.npz   (with the Python of the peer's environment)
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder

KINDS = ("query", "document")
NTK = 8.0  # the scaling of the tiny GTE, and its base
THETA = 20_000.0


def of_gte(folder: str) -> SentenceTransformer:
    """GTE by transformers' own class, as its published code is not run: the rotation set by its formula."""
    values = json.loads((Path(folder) / "config.json").read_text())
    known = transformers.GteConfig().to_dict()
    kept = {name: value for name, value in values.items() if name in known and name != "model_type"}
    rotation = {"rope_type": "default", "rope_theta": 1.0}
    config = transformers.GteConfig(**kept, rope_parameters=rotation)
    body = transformers.GteModel.from_pretrained(folder, config=config)
    width = config.hidden_size // config.num_attention_heads
    frequencies = (NTK * THETA) ** (-torch.arange(0, width, 2) / width) / NTK ** (2 / width)
    body.rotary_emb.inv_freq = frequencies
    scratch = Path(folder).with_name("gte-as-transformers-has-it")
    body.save_pretrained(scratch)
    for name in (
        "tokenizer.json",
        "tokenizer_config.json",
        "modules.json",
        "config_sentence_transformers.json",
    ):
        (scratch / name).write_bytes((Path(folder) / name).read_bytes())
    (scratch / "1_Pooling").mkdir(exist_ok=True)
    (scratch / "1_Pooling" / "config.json").write_bytes(
        (Path(folder) / "1_Pooling" / "config.json").read_bytes()
    )
    (scratch / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": config.max_position_embeddings})
    )
    model = SentenceTransformer(str(scratch), device="cpu")
    model[0].auto_model.rotary_emb.inv_freq = frequencies
    return model


def pooled(folder: str, texts: list[str]) -> dict[str, np.ndarray]:
    """Unit vectors by SentenceTransformer."""
    path = Path(folder) / "config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    model = of_gte(folder) if config.get("model_type") == "new" else SentenceTransformer(folder, device="cpu")
    if "max_position_embeddings" in config:
        offset = 2 if config["model_type"] in ("roberta", "xlm-roberta", "mpnet") else 0
        positions = config["max_position_embeddings"] - offset
        model.max_seq_length = min(model.max_seq_length or positions, positions)
    found = {}
    for kind in KINDS:
        vectors = model.encode(texts, prompt_name=kind if kind in model.prompts else None)
        found[f"{kind}_dense"] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def sparse(folder: str, texts: list[str]) -> dict[str, np.ndarray]:
    """Weights of all terms by SparseEncoder."""
    model = SparseEncoder(folder, device="cpu")
    encode = {"query": model.encode_query, "document": model.encode_document}
    return {f"{kind}_sparse": encode[kind](texts).to_dense().numpy() for kind in KINDS}


def late(folder: str, texts: list[str]) -> dict[str, np.ndarray]:
    """Token vectors of all texts, one after another, by MultiVectorEncoder, and how many each text has."""
    model = MultiVectorEncoder(folder, device="cpu")
    encode = {"query": model.encode_query, "document": model.encode_document}
    found = {}
    for kind in KINDS:
        vectors = encode[kind](texts, convert_to_numpy=True)
        found[f"{kind}_colbert"] = np.concatenate(vectors)
        found[f"{kind}_lengths"] = np.array([len(each) for each in vectors])
    return found


def main() -> None:
    folder, texts, output = sys.argv[1:]
    listed = json.loads((Path(folder) / "modules.json").read_text())
    kinds = {module["type"].rpartition(".")[2] for module in listed}
    by = late if "MultiVectorMask" in kinds else sparse if kinds & {"SpladePooling", "Router"} else pooled
    np.savez(output, **by(folder, json.loads(Path(texts).read_text())))


if __name__ == "__main__":
    main()
