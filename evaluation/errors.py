"""Exceptions about data sets to measure and tune on, and about what measuring needs."""

from tercet.service.exceptions import ServiceError


class DatasetError(ServiceError):
    """A BEIR folder lacks a file, or a line of it cannot be used; the message names file and line."""


class TuningError(ServiceError):
    """The judged queries are too few, or not about the collection's documents."""


class MissingExtraError(ServiceError):
    """A package that measuring needs is not installed; the message names the command that installs it."""


class MeasureError(ServiceError):
    """A measure cannot be computed, or not of so short a ranking; the message names it and the remedy."""
