"""Searches questions and answers in Korean: the question is the title, and filters work on the topic.

Run: pip install ./clients/python; make demo; python examples/korean_faq.py "택배는 언제 와요?"
`--topic 계정` filters. `make demo` serves multi-m3, which reads Korean. The collection korean-faq is made
where it is missing.
"""

import argparse
import json
import os
from pathlib import Path

from tercet_client import Client, open_collection

FAQ = Path(__file__).with_suffix(".jsonl")

parser = argparse.ArgumentParser()
parser.add_argument("question")
parser.add_argument("--topic", choices=("계정", "배송", "결제", "반품"))
parser.add_argument("--url", default="http://127.0.0.1:8080", help="of Tercet (key: TERCET_CLIENT_KEY)")
arguments = parser.parse_args()

with Client(arguments.url, key=os.environ.get("TERCET_CLIENT_KEY")) as client:
    # BM25 counts each two syllables of Hangul, so that endings and particles need no analysis.
    open_collection(client, "korean-faq", {"bm25": True, "fields": {"topic": "keyword"}})
    client.put_documents("korean-faq", [json.loads(line) for line in FAQ.read_text("utf-8").splitlines()])
    found = client.search(
        "korean-faq",
        arguments.question,
        top_k=3,
        weights={"bm25": 1},
        filter={"eq": {"topic": arguments.topic}} if arguments.topic else None,
    )
    for hit in found["hits"]:
        scores = "  ".join(f"{side} {score:.3f}" for side, score in hit["scores"].items())
        print(f"{hit['score']:.3f} = {scores}")
        print(f"    [{hit['metadata']['topic']}] {hit['title']}\n    {hit['text']}")
