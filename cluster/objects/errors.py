"""Exceptions about object stores.

ObjectStoreError
├── StoreAddressError     a URL that names no store
├── UnreachableStoreError the store does not answer, or refuses
├── OverwritingStoreError a second create overwrites, where it must fail
├── AlreadyThereError     an object is to be created, and there is one
├── ObjectMissingError
└── DamagedObjectError    bytes are others than their checksum says
"""

from __future__ import annotations

from tercet.cluster.errors import ClusterError


class ObjectStoreError(ClusterError):
    """Any failure of an object store; its message names the URL and the remedy."""


class StoreAddressError(ObjectStoreError):
    """A URL that names no object store; the message has those that do."""


class UnreachableStoreError(ObjectStoreError):
    """The store does not answer, or refuses; nothing is known of what was asked."""


class OverwritingStoreError(ObjectStoreError):
    """The store lets a second create overwrite the first, so publications on it could be lost."""


class AlreadyThereError(ObjectStoreError):
    """An object of this path is there already; it stays as it is."""


class ObjectMissingError(ObjectStoreError):
    """There is no object of this path."""


class DamagedObjectError(ObjectStoreError):
    """Bytes that were read, sent or stored are others than their checksum says; the message names where."""
