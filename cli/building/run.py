"""A build in this process, with the encoder that it needs and with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tercet.cli import options
from tercet.cli.building.stopping import interruptible
from tercet.cli.output import print_failure
from tercet.cli.stores.remote import named_url

if TYPE_CHECKING:
    from tercet.ingest.build import BuildReport
    from tercet.ingest.document_encoders import DocumentEncoder
    from tercet.ingest.ready import ReadySource
    from tercet.ingest.sources.files import Source
    from tercet.service.settings.settings import Settings


def build_with(
    settings: Settings,
    collection: str,
    source: Source,
    progress: options.ProgressKind = "auto",
    **build: Any,
) -> BuildReport:
    """Builds with the encoder of these settings, with progress; `build` as for `build_collection`.

    A signal ends it as Ctrl-C does. Raises KeyboardInterrupt then, and what the build raises.
    """
    from tercet.ingest.build import build_collection

    return _built(settings, progress, build_collection, collection, source, **build)


def build_ready_with(
    of_command: Settings, collection: str, source: ReadySource, progress: options.ProgressKind, **build: Any
) -> BuildReport:
    """Builds a collection from ready representations; `build` as for `build_ready`."""
    from tercet.ingest.ready import build_ready

    return _built(of_command, progress, build_ready, collection, source, **build)


def _built(
    of_command: Settings,
    progress: options.ProgressKind,
    build: Callable[..., BuildReport],
    collection: str,
    source: Source | ReadySource,
    **arguments: Any,
) -> BuildReport:
    from tercet.cli.progress import build_progress
    from tercet.ingest.errors import BuildCancelledError

    try:
        with (
            interruptible() as cancelled,
            _encoder(of_command, collection) as encoder,
            build_progress(progress) as report,
            options.window_flags(),
            named_url(of_command),
        ):
            root = options.collections_root(of_command)
            return build(encoder, root, collection, source, progress=report, cancelled=cancelled, **arguments)
    except (KeyboardInterrupt, BuildCancelledError):
        print_failure("interrupted; nothing was published")
        raise KeyboardInterrupt from None


@contextmanager
def _encoder(settings: Settings, collection: str) -> Iterator[DocumentEncoder]:
    """The workers that the settings name, or an encoder here: the collection's, where that exists."""
    if not settings.encoder_urls:
        from tercet.cli.encoders import encoder_of
        from tercet.index.collection import Collection
        from tercet.index.errors import CollectionNotFoundError
        from tercet.ingest.document_encoders import LocalDocuments
        from tercet.service.encoding.service import local_encoder

        try:
            present = Collection.open(options.collections_root(settings), collection).settings
        except CollectionNotFoundError:
            yield LocalDocuments(local_encoder(settings))
        else:
            yield LocalDocuments(encoder_of(settings, present))
        return
    from tercet.service.workers.documents import RemoteDocuments

    remote = RemoteDocuments(settings.encoder_urls, settings.worker_access)
    try:
        yield remote
    finally:
        remote.close()
