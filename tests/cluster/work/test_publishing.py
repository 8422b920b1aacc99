"""A shard's snapshot of a number is there once: a repeat counts, and another one is refused."""

from pathlib import Path

import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.snapshots.published import newest_published
from tercet.cluster.work.publishing import publish_shard
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import CollectionBusyError

LINEAGE = Lineage("0a1b-0")


def test_of_two_who_publish_a_number_the_second_says_so_where_it_has_something_else(tmp_path: Path) -> None:
    store, settings = open_store(tmp_path.as_uri()), CollectionSettings("articles", "tiny", "f", 8, 8, 30)
    publish_shard(store, settings, (), LINEAGE, position=3)
    first = newest_published(store)
    publish_shard(store, settings, (), LINEAGE, position=3)
    with pytest.raises(CollectionBusyError, match="snapshot 1 was published by somebody else"):
        publish_shard(store, settings, (), LINEAGE, position=4)
    assert newest_published(store) == first
