"""The three-way query for Milvus, as a script: two searches, whose hits' values are fetched and added up."""

from __future__ import annotations

from tercet.transfer.milvus.connection import MilvusPlace
from tercet.transfer.queries import CollectionQuery


def query_script(place: MilvusPlace, collection: str, query: CollectionQuery) -> str:
    """Python that prints the best documents."""
    fields = ["title", "dense", "sparse", *(["colbert"] if query.colbert is not None else [])]
    return _SCRIPT.format(
        imports="import os\n" if "os.environ" in place.code else "",
        client=place.code,
        collection=collection,
        fields=fields,
        **query.for_script,
    )


_SCRIPT = """# {text}
import base64
{imports}
import numpy as np
from pymilvus import MilvusClient

client = {client}
dense = np.array({dense}, np.float32)
terms = {terms}  # lexical weights, times the collection's idf where it has one
colbert = np.array({colbert}, np.float32)
weights = np.array({sides})
fields = {fields}
client.load_collection({collection!r})
found = {{}}
for query, side in ((dense, "dense"), (terms, "sparse")):
    if len(query):
        (answer,) = client.search(
            {collection!r}, [query], anns_field=side, limit={candidates}, output_fields=fields
        )
        found |= {{hit["id"]: hit["entity"] for hit in answer}}
hits = []
for identifier, hit in found.items():
    late = 0.0
    if len(colbert) and hit["colbert"]:
        vectors = np.stack([np.frombuffer(base64.b64decode(vector), "<f4") for vector in hit["colbert"]])
        late = (colbert @ vectors.T).max(1).mean()
    lexical = sum(terms.get(term, 0.0) * weight for term, weight in hit["sparse"].items())
    score = float(weights @ [dense @ np.array(hit["dense"], np.float32), lexical, late])
    hits.append((score, identifier, hit["title"]))
for score, identifier, title in sorted(hits, key=lambda hit: (-hit[0], hit[1]))[:{hits}]:
    print(round(score, 6), identifier, title)
"""
