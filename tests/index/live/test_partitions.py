"""A partitioned collection while it is written: an id is in one partition, and stays there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.errors import InvalidDocumentError, PartitionConflictError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.live.claims import CLAIMED_SECONDS, Claims
from tercet.index.live.collection import LiveCollection

FIRST = np.array([0])


@pytest.fixture
def collection(root: Path, three: Any, make_settings: Any) -> Collection:
    settings = make_settings(three[1], "demo", fields={"year": "integer"}, partitioned=True)
    return Collection.create(root, "demo", settings)


def document(id: str, partition: str | None) -> Document:
    return Document(id, "word", None, {} if partition is None else {"partition": partition})


def test_settings_are_read_again_with_the_field(collection: Collection, root: Path) -> None:
    settings = Collection.open(root, "demo").settings
    assert settings.partitioned
    assert settings.fields == {"year": "integer", "partition": "keyword"}
    assert settings.own_fields == {"year": "integer"}


def test_an_id_is_in_one_partition(collection: Collection, three: Any) -> None:
    encoded = three[1].take(FIRST)
    with LiveCollection(collection) as live:
        live.put([document("a", "t")], encoded)
        live.flush()
        with pytest.raises(PartitionConflictError, match="'a' is in another partition"):
            live.put([document("a", "u")], encoded)
        assert live.put([document("a", "t")], encoded).documents == 1
        live.delete(["a"])
        live.put([document("a", "u")], encoded)
        assert live.snapshot().get("a") == document("a", "u")
        with pytest.raises(InvalidDocumentError, match="partition is null"):
            live.put([document("b", None)], encoded)


def test_changes_of_metadata_keep_the_partition(collection: Collection, three: Any) -> None:
    with LiveCollection(collection) as live:
        live.put([document("a", "t")], three[1].take(FIRST))
        live.patch("a", {"year": 1})
        live.update(["a"], {"partition": None, "year": 2}, merge=True)
        found = live.snapshot().get("a")
        assert found is not None
        assert found.metadata == {"partition": "t", "year": 2}
        with pytest.raises(InvalidDocumentError, match="stays in its partition"):
            live.patch("a", {"partition": "u"})
        with pytest.raises(InvalidDocumentError, match="stays in its partition"):
            live.update(["a"], {"partition": "u"})
        live.put([document("b", "caf\u00e9")], three[1].take(FIRST))
        assert live.patch("b", {"partition": "cafe\u0301"}).documents == 1, "another form of Unicode"


def test_a_claimed_id_is_not_put(collection: Collection, three: Any) -> None:
    encoded = three[1].take(FIRST)
    with LiveCollection(collection) as live:
        live.claim(["a", "b"], "one")
        live.claim(["a"], "other")
        live.claim(["a"], "one", ends=True)
        position = live.position
        with pytest.raises(PartitionConflictError, match="'a' is being put into another partition just now"):
            live.put([document("a", "t")], encoded)
        live.put([document("c", "t")], encoded)
        with pytest.raises(PartitionConflictError, match="'c' is in another partition"):
            live.claim(["d", "c"], "one")
        with pytest.raises(PartitionConflictError, match="'c' is in another partition"):
            live.claim(["d"], "one", own={"e": "t", "c": "u"})
        live.claim(["d"], "one", own={"e": "t", "c": "t"})
        live.claim(["a"], "other", ends=True)
        live.put([document("a", "t")], encoded)
        assert live.position == position + 2


def test_claims_end() -> None:
    now = 0.0
    claims = Claims(lambda: now)
    a, b = PackedBytes.of([b"a"]), PackedBytes.of([b"b"])
    claims.add(a, "one")
    now = CLAIMED_SECONDS - 1
    with pytest.raises(PartitionConflictError):
        claims.require_none(a)
    claims.add(b, "other")
    now = CLAIMED_SECONDS
    claims.require_none(a)
    with pytest.raises(PartitionConflictError):
        claims.require_none(b)
    claims.add(b, "one")
    assert list(claims._until) == [b"b"]
    claims.drop(b, "other")
    claims.drop(b, "one")
    assert not claims._until
