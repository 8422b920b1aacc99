"""Exceptions of exports.

TransferError
├── TargetExistsError    the target is there already
└── MissingPackageError  a target needs a package that is not installed
"""


class TransferError(Exception):
    """An export that cannot be done or did not end; the message says what of it is in the target."""


class TargetExistsError(TransferError):
    """There is something of the target's name, and nothing was said of it."""


class MissingPackageError(TransferError):
    """A package is missing; the message names the extra that brings it."""


def missing(package: str, extra: str, error: ImportError) -> MissingPackageError:
    """What to raise where the import of a target's package failed."""
    return MissingPackageError(f"this needs the package {package} ({error}): pip install 'tercet[{extra}]'")
