"""The README's example, and what else it names."""

from __future__ import annotations

from pathlib import Path

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_tercet import TercetRerank
from tercet_readme import run_examples

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_example_runs(url: str, key: str | None, collection: str) -> None:
    found = run_examples(README, url, key, {"notes": collection})
    assert found["found"].id == "tea"
    assert found["best"][0].id == "tea"
    assert len(found["retriever"].invoke("hot water")) == 1
    both = ContextualCompressionRetriever(
        base_compressor=TercetRerank(url=url, key=key, top_n=1), base_retriever=found["retriever"]
    )
    assert both.invoke("hot water")[0].id == "tea"
