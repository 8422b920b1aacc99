"""Logging set-up: one line for each event, as JSON for machines or as text for people."""

from __future__ import annotations

import logging.config
import os
from collections.abc import Callable
from typing import Literal

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

from tercet.service.telemetry.queued_writer import QueuedWriter
from tercet.service.tracing.request import trace_ids

STDERR = 2
GATHER_SECONDS = 0.02  # between two writes
LOST = "%d lines of the log were dropped: nobody took them in time"


def configure_logging(
    level: str = "info",
    style: Literal["json", "text"] = "json",
    lost: Callable[[int], None] = lambda _: None,
) -> QueuedWriter:
    """Sends all logs to standard error at this level, through a queue. Replaces any earlier set-up.

    lost: told of so many lines that nobody took. Gives what is to be closed at the end.
    """

    def tell(lines: int) -> None:
        lost(lines)
        line = logging.LogRecord("tercet", logging.WARNING, "", 0, LOST, (lines,), None)
        writer.put(line)

    # No line says where in the code it was written, or by which thread; that takes as long as the rest.
    logging._srcfile = None  # as Python's documentation has it
    logging.logThreads = logging.logMultiprocessing = logging.logProcesses = False
    formatter = json_formatter() if style == "json" else TextFormatter()
    writer = QueuedWriter("log", _write_to_stderr, formatter, tell, gather_seconds=GATHER_SECONDS)
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"trace": {"()": TraceFilter}},
            "handlers": {"stderr": {"()": lambda: _QueueHandler(writer), "filters": ["trace"]}},
            "root": {"level": level.upper(), "handlers": ["stderr"]},
            "loggers": {
                "httpx": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                # It calls the start-up complete before the encoder is loaded; our own lines say when it is.
                "uvicorn.error": {"level": "WARNING"},
            },
        }
    )
    return writer


class _QueueHandler(logging.Handler):
    """Only notes a record: whoever stalls at the other end of standard error stalls a thread, nobody else."""

    def __init__(self, writer: QueuedWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Leaves it to the thread."""
        self._writer.put(record)


def _write_to_stderr(lines: str) -> None:
    """Writes past Python's own buffer, whose lock a thread that stalls would hold at the end, too."""
    data = lines.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(STDERR, data) :]


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
        facts = ("method", "path", "status", "milliseconds", "key", "request_id", "trace_id")
        shown = [f"{fact}={getattr(record, fact)}" for fact in facts if hasattr(record, fact)]
        return " ".join([line, *shown])
