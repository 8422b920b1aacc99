"""Tercet in LangChain."""

from langchain_tercet.compressor import TercetRerank
from langchain_tercet.embeddings import TercetEmbeddings
from langchain_tercet.retriever import TercetRetriever
from langchain_tercet.vectorstore import TercetVectorStore

__all__ = ["TercetEmbeddings", "TercetRerank", "TercetRetriever", "TercetVectorStore"]
