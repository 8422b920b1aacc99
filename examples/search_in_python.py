"""Builds a collection and searches it in one process, with no service.

Run from the repository's root: python examples/search_in_python.py
"""

import json
import tempfile
from pathlib import Path

from tercet.index.collection import Collection
from tercet.ingest.build import build_collection
from tercet.ingest.document_encoders import LocalDocuments
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder

RECIPES = [
    {"id": "sourdough", "text": "Sourdough rises by wild yeast; the starter is fed with flour and water."},
    {"id": "meringue", "text": "Meringue is egg white beaten with sugar and dried in a cool oven."},
    {"id": "kimchi", "text": "Kimchi is cabbage fermented with salt, chilli and garlic."},
]

encoder = load_encoder("minilm-m3")
with tempfile.TemporaryDirectory() as folder:
    source, collections = Path(folder, "recipes.jsonl"), Path(folder, "collections")
    source.write_text("\n".join(map(json.dumps, RECIPES)), encoding="utf-8")
    report = build_collection(LocalDocuments(encoder), collections, "recipes", source)
    print(f"{report.documents} documents, {report.tokens} tokens, snapshot {report.snapshot}")

    snapshot = Collection.open(collections, "recipes").snapshot()
    query = encode(encoder, ["which vegetable is preserved with salt?"], "query")
    for hit in snapshot.search(query, top_k=3).hits:
        s = hit.scores
        print(f"{hit.score:.3f} = {s.dense:.3f} + {s.sparse:.3f} + {s.colbert:.3f}  {hit.document.id}")
