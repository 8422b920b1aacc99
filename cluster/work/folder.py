"""The folder of one work on an object store, from its beginning until its result is published."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.collecting import WORKS
from tercet.cluster.work.records import agreed, recorded
from tercet.index.catalog.lineage import Lineage, ShardPart
from tercet.index.catalog.records import Record
from tercet.index.catalog.settings import CollectionSettings, settings_of_record
from tercet.index.codebook import Codebook

BEGUN = "begun.json"


@dataclass(frozen=True, slots=True)
class BegunWork:
    """What all processes that do a work have in common, whenever they begin.

    generation: what the folders of its shards are called by, new for each work; settings: of the collection.
    """

    generation: str
    settings: CollectionSettings

    def shard(self, number: int) -> str:
        """The folder of a shard, below the collection's URL."""
        return f"shards/{self.generation}-{number}"

    def lineage(self, number: int, part: ShardPart) -> Lineage:
        """Of a shard that it makes, which has this part."""
        return Lineage(f"{self.generation}-{number}", part=part)


def work_folder(key: str) -> str:
    """Where the records of the work of a key are, below the collection's URL."""
    return f"{WORKS}/{key}"


def found_work(store: ObjectStore) -> BegunWork | None:
    """The work that was begun in a folder, None where none was. Raises DamagedIndexError."""
    content = recorded(store, BEGUN)
    return None if content is None else _work_of(store, content)


def begin_work(store: ObjectStore, settings: CollectionSettings, generation: str | None = None) -> BegunWork:
    """Begins a work in a folder, or takes part in the one that another process began there meanwhile.

    generation: by default random.
    """
    if settings.codebook is not None:
        agreed(store, _codebook_path(settings.codebook.sha256), settings.codebook.content)
    begun = {"generation": generation or secrets.token_hex(4), "settings": json.loads(settings.content)}
    return _work_of(store, agreed(store, BEGUN, json.dumps(begun).encode()))


def remove_work(store: ObjectStore) -> None:
    """Removes all that a work left in its folder; who still does a piece of it fails."""
    store.delete([each.path for each in store.list()])


def _work_of(store: ObjectStore, content: bytes) -> BegunWork:
    begun = json.loads(content)
    record, codebook = begun["settings"], None
    if "codebook" in record:
        path = _codebook_path(record["codebook"])
        codebook = Codebook.of_content(store.get(path), f"{store.url}/{path}")
    settings = settings_of_record(Record.of(record, Path(f"{store.url}/{BEGUN}")), codebook)
    return BegunWork(begun["generation"], settings)


def _codebook_path(sha256: str) -> str:
    return f"codebooks/{sha256}"
