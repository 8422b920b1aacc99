"""Where the files of a collection lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tercet.index.catalog.lineage import LINEAGE_FILE
from tercet.index.catalog.manifest import is_manifest_name
from tercet.index.catalog.settings import FIELDS_FILE, SETTINGS_FILE
from tercet.index.errors import DamagedIndexError, damaged
from tercet.index.files.content import open_file

EMPTY_NAME = "000000"  # of a snapshot before the first publication
FIRST_MANIFEST = "000001"


@dataclass(frozen=True, slots=True)
class CollectionLayout:
    """The paths of one collection. folder: `collections/<name>`."""

    folder: Path

    @property
    def settings(self) -> Path:
        return self.folder / SETTINGS_FILE

    @property
    def fields(self) -> Path:
        """`fields.json`, where fields were declared after the creation."""
        return self.folder / FIELDS_FILE

    @property
    def defaults(self) -> Path:
        """`defaults.json`, where defaults were stored."""
        return self.folder / "defaults.json"

    @property
    def effort(self) -> Path:
        """`effort.json`, where the effort of dense searches was stored."""
        return self.folder / "effort.json"

    @property
    def lineage(self) -> Path:
        """`lineage.json`, of which collection this is a copy."""
        return self.folder / LINEAGE_FILE

    @property
    def current(self) -> Path:
        """`CURRENT`, the name of the current manifest."""
        return self.folder / "CURRENT"

    @property
    def verified(self) -> Path:
        """`VERIFIED`, by which a folder that was made or verified here is known."""
        return self.folder / "VERIFIED"

    @property
    def lock(self) -> Path:
        """`LOCK`, locked by the writer."""
        return self.folder / "LOCK"

    @property
    def fence(self) -> Path:
        """`fence.json`, where a re-sharding had the collection refuse writes."""
        return self.folder / "fence.json"

    @property
    def remote(self) -> Path:
        """`remote.json`, of a collection whose operations are kept elsewhere, too."""
        return self.folder / "remote.json"

    @property
    def ledger(self) -> Path:
        """`ledger.sqlite`, accepted operations that no segment has."""
        return self.folder / "ledger.sqlite"

    @property
    def manifests(self) -> Path:
        return self.folder / "manifests"

    @property
    def segments(self) -> Path:
        return self.folder / "segments"

    @property
    def deletes(self) -> Path:
        """The folder of delete marks."""
        return self.folder / "deletes"

    @property
    def builds(self) -> Path:
        """The folder of builds under way, each a collection folder of its own."""
        return self.folder / "builds"

    def segment(self, identifier: str) -> Path:
        return self.segments / identifier

    def manifest(self, name: str) -> Path:
        return self.manifests / f"{name}.json"

    def read_current(self) -> str | None:
        """The name in CURRENT, or None before the first publication.

        Raises DamagedIndexError where the file holds no manifest's name, or was lost.
        """
        try:
            with open_file(self.current) as file:
                content = file.read().decode("ascii", errors="replace")
        except FileNotFoundError as error:
            # A first publication that was killed leaves its manifest; a later one needs a CURRENT before it.
            later = sorted(path.stem for path in self.manifests.glob("*.json") if path.stem > FIRST_MANIFEST)
            if later:
                raise DamagedIndexError(
                    f"{self.current} is missing; restore it with the one line {later[-1]}, or rebuild"
                ) from error
            return None
        name = content.removesuffix("\n")
        if not is_manifest_name(name):
            raise damaged(self.current, f"holds {name[:40]!r}, which is no manifest's name")
        return name
