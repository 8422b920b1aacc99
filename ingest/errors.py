"""Exceptions of the offline pipeline.

IngestError
├── SourceError          a source of documents cannot be read, or a record of it is bad
└── BuildCancelledError  the build was asked to stop
"""


class IngestError(Exception):
    """Any failure of a build that is neither the index's nor the encoder's."""


class SourceError(IngestError):
    """A source of documents cannot be read; the message names the file, and the line where there is one."""


class BuildCancelledError(IngestError):
    """The build was asked to stop; nothing was published."""
