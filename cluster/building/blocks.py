"""The documents of a source in blocks, each of one shard and named by its content.

A block is what one process encodes at a time. The same source gives the same blocks, so that a build that was
interrupted finds what it had encoded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson

from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Document
from tercet.index.documents.id_register import IdRegister
from tercet.index.documents.partitions import placed_by
from tercet.index.documents.store import encode_document

BLOCK_DOCUMENTS = 4_096
BLOCK_BYTES = 8 * 2**20
WAITING_BYTES = 256 * 2**20  # of all blocks that are being filled


@dataclass(frozen=True, slots=True)
class Block:
    """Documents of one shard, one JSON object a line."""

    shard: int
    documents: int
    content: bytes

    @property
    def name(self) -> str:
        """The SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(slots=True)
class _Filling:
    lines: list[bytes] = field(default_factory=list)
    size_bytes: int = 0


def blocks_of(
    documents: Iterable[Document],
    placement: Placement,
    most: int = BLOCK_DOCUMENTS,
    size_bytes: int = BLOCK_BYTES,
    *,
    partitioned: bool = False,
) -> Iterator[Block]:
    """Documents divided among the shards, in blocks of at most so many documents, and about so many bytes.

    Raises DuplicateDocumentError where an id is there twice, InvalidDocumentError, and what reading raises.
    """
    size_bytes = min(size_bytes, WAITING_BYTES // placement.shards)
    filling, ids = [_Filling() for _ in range(placement.shards)], IdRegister()
    for document in documents:
        id, content = encode_document(document)
        ids.add([id])
        shard = placement.shard_of(placed_by(document, partitioned=partitioned))
        block = filling[shard]
        block.lines.append(b'{"id":' + orjson.dumps(document.id) + b"," + content[1:])
        block.size_bytes += len(block.lines[-1])
        if len(block.lines) >= most or block.size_bytes >= size_bytes:
            yield _block(shard, block)
            filling[shard] = _Filling()
    for shard, block in enumerate(filling):
        if block.lines:
            yield _block(shard, block)


def documents_of(content: bytes) -> Iterator[Document]:
    """The documents of a block."""
    for line in content.splitlines():
        found = orjson.loads(line)
        yield Document(found["id"], found["text"], found["title"], found["metadata"])


def _block(shard: int, filling: _Filling) -> Block:
    return Block(shard, len(filling.lines), b"\n".join(filling.lines))
