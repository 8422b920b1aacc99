"""Exceptions about collections, snapshots and documents.

SearchIndexError
├── InvalidNameError          a name of a collection or a field that there cannot be
├── CollectionNotFoundError
├── CollectionExistsError
├── CollectionAliasedError    aliases mean the collection that is to be deleted
├── AliasNotFoundError
├── SeveralCollectionsError   an alias means several collections, where one is wanted, or too many
├── UnlikeCollectionsError    collections that cannot be searched as one
├── BackupNotFoundError
├── CollectionBusyError       another writer holds the collection
├── CollectionFencedError     it takes no writes, as it moves to other servers
│   └── CollectionMovedError  it has other documents than who asks knows of
├── WriterReplacedError       another server writes it by now
├── FingerprintMismatchError  searched or written with another encoder
├── InvalidFieldError         a field cannot be declared as it is said
├── InvalidDocumentError      a document breaks a limit or lacks a part
├── DuplicateDocumentError    an id occurs twice
├── DocumentNotFoundError     no document has this id
├── AmbiguousDocumentError    several collections that are searched as one have a document of this id
├── PartitionConflictError    an id is in another partition
├── DocumentChangedError      a document was written after the position that a write depends on
├── PositionLostError         no write of the collection has a position: the one that had it was lost
├── IdempotencyMismatchError  the key of a write was used for another write
├── WriteTooLargeError        one write is larger than memory may hold
├── WriteOverloadedError      memory is full of writes that wait to be flushed
├── InvalidQueryError         a query, filter or option the index cannot answer
│   └── NothingToTuneError    the collection has no approximate search
├── DamagedIndexError         a file is missing, altered or inconsistent
├── DenseBuildError           FAISS could not build an index
├── UnforcedPublicationError  published, but not known to be forced to the disk
├── StorageError              the disk or its file system failed, or cannot be written
│   ├── StorageFullError      no space left
│   └── WriteUnknownError     whether a write is on the disk cannot be told
├── TooManyFilesError         the files that the index may have open are all in use
└── DeviceUnavailableError    a GPU was asked for, and FAISS has none
"""

from __future__ import annotations

from pathlib import Path


class SearchIndexError(Exception):
    """Any failure of the index; its message names the value, the limit and the remedy."""


class InvalidNameError(SearchIndexError):
    """A name of a collection or a field that there cannot be; the message has the rule."""


class CollectionNotFoundError(SearchIndexError):
    """No collection of that name. folder: where it would be, which no client is told; was_deleted: whether it
    was here, and was deleted.
    """

    def __init__(self, message: str, folder: Path | None = None, *, was_deleted: bool = False) -> None:
        super().__init__(message)
        self.folder = folder
        self.was_deleted = was_deleted


class CollectionExistsError(SearchIndexError):
    """A collection of that name exists already, or an alias."""


class CollectionAliasedError(SearchIndexError):
    """A collection is to be deleted that aliases mean; the message names them."""


class AliasNotFoundError(SearchIndexError):
    """No alias of that name."""


class SeveralCollectionsError(SearchIndexError):
    """An alias means several collections, where one is wanted, or too many; the message names them."""


class UnlikeCollectionsError(SearchIndexError):
    """Collections cannot be searched as one; the message names two, what they differ in, and how."""


class BackupNotFoundError(SearchIndexError):
    """The collection has no backup of this id."""


class CollectionBusyError(SearchIndexError):
    """Another process or thread is writing to the collection."""


class CollectionFencedError(SearchIndexError):
    """The collection takes no writes here, as it moves to other servers; nothing was written."""


class CollectionMovedError(CollectionFencedError):
    """The collection is another part of one over shards than whoever asks takes it for; nothing was done."""


class WriterReplacedError(SearchIndexError):
    """Another server writes the collection by now, and this one's writes are refused; nothing was written."""


class FingerprintMismatchError(SearchIndexError):
    """The collection was built with another encoder; the message names both."""


class InvalidFieldError(SearchIndexError):
    """A field is declared already with another type, or its type or their number cannot be.

    field: its name, where it is about one.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InvalidDocumentError(SearchIndexError):
    """A document breaks a limit, has a wrong type or lacks a part.

    part: which of its parts is wrong, such as `metadata.year`, where that is known. index: of the document
    among those that were given, where that is known.
    """

    def __init__(self, message: str, part: str | None = None) -> None:
        super().__init__(message)
        self.part = part
        self.index: int | None = None


class DuplicateDocumentError(SearchIndexError):
    """A document id occurs more than once; the message names it.

    index: of its second document among those of one write; None in a build.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


class DocumentNotFoundError(SearchIndexError):
    """No document of the collection has this id."""


class AmbiguousDocumentError(SearchIndexError):
    """Several collections that are searched as one have a document of this id; the message names them."""


class PartitionConflictError(SearchIndexError):
    """A document of this id is in another partition, or is being put there just now."""


class DocumentChangedError(SearchIndexError):
    """A document was written after the position that a write depends on; the message names both."""


class PositionLostError(SearchIndexError):
    """No write of the collection has a position that is named: the one that was given it was lost."""


class IdempotencyMismatchError(SearchIndexError):
    """The idempotency key of a write was used for another write; the message names its position."""


class WriteTooLargeError(SearchIndexError):
    """One write is larger than the memory for writes; the message names the limit."""


class WriteOverloadedError(SearchIndexError):
    """The memory for writes is full, and flushes did not free it in time."""


class InvalidQueryError(SearchIndexError):
    """A query, filter or search option that this collection cannot answer."""


class NothingToTuneError(InvalidQueryError):
    """A collection's dense search is exact, so there is no effort to choose."""


class DamagedIndexError(SearchIndexError):
    """A file of the index is missing, altered or inconsistent; the message names the file."""


def damaged(what: object, fault: str) -> DamagedIndexError:
    """That a file, or whatever messages call it, is not as it was published, and what to do about it."""
    return DamagedIndexError(f"{what} {fault}; restore it or rebuild the collection")


class DenseBuildError(SearchIndexError):
    """FAISS could not build an index of the vectors; the message has its reason."""


class UnforcedPublicationError(SearchIndexError):
    """A snapshot is or may be published, but could not be forced to the disk; nothing was removed."""


class StorageError(SearchIndexError):
    """The disk or its file system failed, or cannot be written; nothing of the write is there."""


class StorageFullError(StorageError):
    """No space is left on the disk; nothing of the write is there."""


class WriteUnknownError(StorageError):
    """The disk failed in the middle of a commit: whether the write is there cannot be told yet."""


class TooManyFilesError(SearchIndexError):
    """The files that the index may have open are all in use; nothing was opened."""


class DeviceUnavailableError(SearchIndexError):
    """Dense search on a GPU was asked for, and this FAISS sees none."""
