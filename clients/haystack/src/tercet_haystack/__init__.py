"""Tercet in Haystack."""

from tercet_haystack.document_store import TercetDocumentStore
from tercet_haystack.embedders import TercetDocumentEmbedder, TercetTextEmbedder
from tercet_haystack.ranker import TercetRanker
from tercet_haystack.retriever import TercetRetriever

__all__ = [
    "TercetDocumentEmbedder",
    "TercetDocumentStore",
    "TercetRanker",
    "TercetRetriever",
    "TercetTextEmbedder",
]
