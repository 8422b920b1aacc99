"""LlamaIndex's nodes as Tercet's documents, and back."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from tercet_client import json_metadata
from tercet_client.types import DocumentRequest, DocumentResponse, HitResponse

SOURCE = "ref_doc_id"  # the field by which the nodes of a document are found
NODE = "_node_content"  # where LlamaIndex keeps a node as JSON
SCORES = "tercet"  # the key of a found node's metadata that has its scores


def to_tercet(node: BaseNode) -> DocumentRequest:
    """The document to put. The metadata that LlamaIndex embeds is the title, so that it is encoded, too.

    Raises ValueError where the metadata is not JSON.
    """
    metadata: dict[str, Any] = node_to_metadata_dict(node, remove_text=True)
    for copy in ("document_id", "doc_id", SOURCE):  # which say "None" where there is none
        del metadata[copy]
    if node.ref_doc_id is not None:
        metadata[SOURCE] = node.ref_doc_id
    title = node.get_metadata_str(MetadataMode.EMBED)
    request: DocumentRequest = {
        "id": node.node_id,
        "text": node.get_content(MetadataMode.NONE),
        "metadata": json_metadata(node.node_id, metadata),
    }
    if title:
        request["title"] = title
    return request


def from_tercet(found: DocumentResponse) -> BaseNode:
    """A stored node; what LlamaIndex did not write becomes a TextNode, with its title in the metadata."""
    return _node(found["id"], found["text"], found["title"], found["metadata"])


def from_hit(hit: HitResponse, *, scores: bool) -> BaseNode:
    """A hit. scores: in the metadata, where neither embeddings nor language models see them."""
    node = _node(hit["id"], hit["text"], hit["title"], hit["metadata"])
    if scores:
        names = ("score", "scores", "window", "explanation")
        node.metadata[SCORES] = {name: hit[name] for name in names if name in hit}  # type: ignore[literal-required]
        node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, SCORES]
        node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, SCORES]
    return node


def _node(id: str, text: str, title: str | None, metadata: dict[str, Any]) -> BaseNode:
    if NODE in metadata:
        return metadata_dict_to_node(metadata, text=text)
    more = {} if title is None else {"title": title}
    return TextNode(id_=id, text=text, metadata={**more, **metadata})
