"""Logging set-up: one line for each event, as JSON for machines or as text for people."""

from __future__ import annotations

import logging.config
from typing import Literal

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

from service.tracing.request import trace_ids


def configure_logging(level: str = "info", style: Literal["json", "text"] = "json") -> None:
    """Sends all logs to standard error at this level. Replaces any earlier set-up."""
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"()": json_formatter if style == "json" else TextFormatter}},
            "filters": {"trace": {"()": TraceFilter}},
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["trace"]}
            },
            "root": {"level": level.upper(), "handlers": ["stderr"]},
            "loggers": {
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                # It calls the start-up complete before the encoder is loaded; our own lines say when it is.
                "uvicorn.error": {"level": "WARNING"},
            },
        }
    )


def json_formatter(fields: str = "%(asctime)s %(levelname)s %(name)s %(message)s") -> JsonFormatter:
    """One JSON object a line: these fields of a record and what its event adds."""
    return JsonFormatter(
        fields,
        datefmt="%Y-%m-%dT%H:%M:%S%z",
        rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
        # uvicorn repeats its messages with terminal colours in this field.
        reserved_attrs=[*RESERVED_ATTRS, "color_message"],
    )


class TraceFilter(logging.Filter):
    """Gives each line of a request that is traced the W3C ids of its trace."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        vars(record).update(trace_ids())
        return True


class TextFormatter(logging.Formatter):
    """One plain line, with a request's facts after the message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The line of one record."""
        line = super().format(record)
        facts = ("method", "path", "status", "milliseconds", "request_id", "trace_id")
        shown = [f"{fact}={getattr(record, fact)}" for fact in facts if hasattr(record, fact)]
        return " ".join([line, *shown])
