"""Blocks: of one shard each, bounded, the same for the same documents."""

import pytest

from tercet.cluster.building.blocks import blocks_of, documents_of
from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Document
from tercet.index.errors import DuplicateDocumentError

DOCUMENTS = [
    Document(
        f"id {number}\n", f"text\r\n{number} \u2028 tea", None if number % 2 else "title", {"n": number / 3}
    )
    for number in range(50)
]


def test_a_block_has_documents_of_one_shard_in_their_order() -> None:
    found = list(blocks_of(DOCUMENTS, Placement.evenly(3), most=4))
    assert max(block.documents for block in found) == 4
    for shard in range(3):
        of_shard = [document for document in DOCUMENTS if Placement.evenly(3).shard_of(document.id) == shard]
        contents = [block.content for block in found if block.shard == shard]
        assert [each for content in contents for each in documents_of(content)] == of_shard
    assert [block.name for block in blocks_of(DOCUMENTS, Placement.evenly(3), most=4)] == [
        block.name for block in found
    ]


def test_a_block_is_bounded_in_bytes() -> None:
    found = list(blocks_of(DOCUMENTS, Placement.evenly(1), size_bytes=200))
    assert sum(block.documents for block in found) == 50
    longest = max(len(line) for block in found for line in block.content.split(b"\n"))
    assert max(len(block.content) for block in found) < 200 + longest + 10


def test_an_id_that_is_there_twice_is_named() -> None:
    with pytest.raises(DuplicateDocumentError, match="twice"):
        list(
            blocks_of(
                [Document("twice", "a"), Document("b", "b"), Document("twice", "c")], Placement.evenly(4)
            )
        )
