"""Exceptions about data sets to measure on."""

from service.exceptions import ServiceError


class DatasetError(ServiceError):
    """A BEIR folder lacks a file, or a line of it cannot be used; the message names file and line."""
