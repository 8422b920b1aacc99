"""What works while a live collection is open: made in order, and closed in the end."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from tercet.index.catalog.fence import Fence
from tercet.index.catalog.layout import EMPTY_NAME
from tercet.index.catalog.manifest import Manifest
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.dense.kinds import Device
from tercet.index.files.directory import remove_folder
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.remote import Begun, RemoteLedger, require_none
from tercet.index.live.adoption import Adoption
from tercet.index.live.committer import Committer
from tercet.index.live.declaration import Declaration
from tercet.index.live.fencing import Fencing
from tercet.index.live.flush import Flush
from tercet.index.live.merge import Merge
from tercet.index.live.records import LiveLimits, LiveObserver
from tercet.index.live.replay import replay
from tercet.index.live.resuming import Resuming
from tercet.index.live.settling import Settling
from tercet.index.live.state import LiveState
from tercet.index.live.threads import LiveThreads
from tercet.index.live.upkeep import Upkeep
from tercet.index.publisher import Publisher
from tercet.index.segments.segment import Segment
from tercet.index.verified import is_noted, note_verified

WRITER_FILES = 5  # the lock, and of SQLite the ledger, its log, the index of that, and once more the ledger:
# where a connection to it is closed while another has locks, SQLite keeps the descriptor for the next


@dataclass(frozen=True, slots=True)
class LiveParts:
    """opened: what is closed in the end."""

    ledger: Ledger
    committer: Committer
    flush: Flush
    merge: Merge
    adoption: Adoption
    declaration: Declaration
    fencing: Fencing
    resuming: Resuming
    settling: Settling
    upkeep: Upkeep
    opened: ExitStack


def open_parts(
    collection: Collection,
    limits: LiveLimits,
    observer: LiveObserver,
    device: Device,
    threads: LiveThreads | None,
    remote: RemoteLedger | None,
    opened: ExitStack,
) -> LiveParts:
    """Opens a collection whose lock is held, and carries out again what its ledgers hold and no segment does.

    The others are as of `LiveCollection`; opened: closes what is open if this fails, and is empty afterwards.
    Raises CollectionBusyError, DamagedIndexError, and as `RemoteLedger.begin`.
    """
    if threads is None:
        threads = LiveThreads()
        opened.callback(threads.close)
    layout = collection.layout
    if remote is None:
        require_none(layout)
    is_copied = not is_noted(layout)
    manifest = collection.verified_manifest()
    settings = CollectionSettings.read(layout.settings).with_lineage(layout.folder)
    state = _published(collection, settings, manifest, device)
    ledger = opened.enter_context(Ledger.open(layout.ledger))
    state = replay(state, ledger.entries(state.position))
    begun = Begun((), needs_snapshot=False)
    if remote is not None:
        begun = remote.begin(state.position)
    if begun.entries:
        ledger.append(begun.entries, least_position=state.position + 1)
        state = replay(state, enumerate(begun.entries, state.position + 1))
    publisher = Publisher(layout, settings, manifest, device)
    remove_folder(layout.builds)  # none of which can be adopted any more
    fence = Fence.read(layout)
    committer = Committer(ledger, state, threads.committers, observer, is_fenced=fence.closed, remote=remote)
    opened.callback(committer.close)
    flush = Flush(publisher, committer, ledger, observer)
    merge = Merge(publisher, committer, observer, limits.merge_width)
    upkeep = Upkeep(committer, flush, merge, limits, observer, threads)
    opened.callback(upkeep.close)
    resuming = Resuming(publisher, committer, flush)
    if is_copied and state.position and not fence.closed and remote is None:
        # The original may have later writes; those of a remote ledger are all here.
        assert settings.lineage is not None  # noqa: S101 - `with_lineage` gives one
        resuming.run(*settings.lineage.resumed(state.position, state.position))
        note_verified(layout)
    if begun.needs_snapshot and remote is not None:
        flush.run()
        remote.publish()
    adoption = Adoption(publisher, committer, flush, ledger)
    return LiveParts(
        ledger,
        committer,
        flush,
        merge,
        adoption,
        Declaration(publisher, committer, flush),
        Fencing(publisher, committer),
        resuming,
        Settling(publisher, committer, flush, ledger, adoption),
        upkeep,
        opened.pop_all(),
    )


def _published(
    collection: Collection, settings: CollectionSettings, manifest: Manifest | None, device: Device
) -> LiveState:
    """The collection as its current manifest has it."""
    if manifest is None:
        return LiveState(settings, EMPTY_NAME, ())
    segments = tuple(Segment.open(collection.layout, entry, settings, device) for entry in manifest.segments)
    position = manifest.ledger_position
    return LiveState(settings, manifest.name, segments, position=position, flushed_position=position)
