"""Searches, embeds and re-ranks over HTTP; `make demo` starts the service that answers.

Run: python examples/http_client.py [URL]; TERCET_CLIENT_KEY has the server's key, if it needs one.
"""

import os
import sys

import httpx

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
headers = (
    {"Authorization": f"Bearer {os.environ['TERCET_CLIENT_KEY']}"}
    if "TERCET_CLIENT_KEY" in os.environ
    else {}
)
with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
    query = "why does bread dough rise?"

    try:
        answer = client.post("/search", json={"collection": "demo", "query": query, "top_k": 3})
    except httpx.ConnectError:
        sys.exit(f"nothing answers at {url}; start the service with: make demo")
    answer.raise_for_status()
    for hit in answer.json()["hits"]:
        print(f"{hit['score']:.3f}  {hit['id']}  {hit['scores']}")

    answer = client.post("/embed", json={"inputs": [query], "input_type": "query", "outputs": ["sparse"]})
    answer.raise_for_status()
    sparse = answer.json()["embeddings"][0]["sparse"]
    print(
        {token: round(weight, 3) for token, weight in zip(sparse["tokens"], sparse["weights"], strict=True)}
    )

    documents = ["Yeast makes gas in the dough.", "Bread is sold by weight."]
    answer = client.post("/rerank", json={"query": query, "inputs": documents})
    answer.raise_for_status()
    for result in answer.json()["results"]:
        print(f"{result['score']:.3f}  {documents[result['index']]}")
