"""Tercet as LlamaIndex's vector store."""

from llama_index.vector_stores.tercet.store import TercetVectorStore

__all__ = ["TercetVectorStore"]
