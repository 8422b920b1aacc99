"""Logging set-up: one line for each event, as JSON for machines or as text for people."""

from __future__ import annotations

import logging.config
from typing import Literal

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter


def configure_logging(level: str = "info", style: Literal["json", "text"] = "json") -> None:
    """Sends all logs to standard error at this level. Replaces any earlier set-up."""
    json_format = {
        "()": JsonFormatter,
        "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s",
        "rename_fields": {"asctime": "time", "levelname": "level", "name": "logger"},
        "datefmt": "%Y-%m-%dT%H:%M:%S%z",
        # uvicorn repeats its messages with terminal colours in this field.
        "reserved_attrs": [*RESERVED_ATTRS, "color_message"],
    }
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": json_format if style == "json" else {"()": TextFormatter}},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"level": level.upper(), "handlers": ["stderr"]},
            "loggers": {
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                # It calls the start-up complete before the encoder is loaded; our own lines say when it is.
                "uvicorn.error": {"level": "WARNING"},
            },
        }
    )


class TextFormatter(logging.Formatter):
    """One plain line, with a request's facts after the message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The line of one record."""
        line = super().format(record)
        facts = ("method", "path", "status", "milliseconds", "request_id")
        shown = [f"{fact}={getattr(record, fact)}" for fact in facts if hasattr(record, fact)]
        return " ".join([line, *shown])
