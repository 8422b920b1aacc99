"""Settings of limits and of logs; see `fields.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tercet.service.settings.fields import SettingsFields
from tercet.service.settings.roles import (
    OF_ALL,
    OF_AUDIT,
    OF_AUDIT_FILE,
    OF_ENCODER,
    OF_SEARCH,
    OF_SERVE,
    Panel,
)


class LimitFields(SettingsFields):
    """Those of `SettingsFields`, and after them how much a server takes on and what it logs."""

    max_body_bytes: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        8 << 20, ge=1, description="Largest request body."
    )
    max_bodies_bytes: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        64 << 20, ge=1, description="Bytes of all bodies that are arriving or in work; more get 429."
    )
    max_import_bytes: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        1 << 30, ge=1, description="Largest file of POST /collections/{name}/import."
    )
    compression: Annotated[bool, OF_ALL, Panel.LIMITS] = Field(
        True, description="Compress answers for clients that accept zstd or gzip."
    )
    max_concurrent_requests: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        512, ge=1, description="Requests in work; more get 429."
    )
    max_wait_seconds: Annotated[float, OF_ALL, Panel.LIMITS] = Field(
        2, gt=0, description="Longest a request should wait for its work; 429 where half of it is predicted."
    )
    request_timeout_seconds: Annotated[float, OF_ALL, Panel.LIMITS] = Field(
        60, gt=0, description="Longest a request may wait; a client may ask for less (X-Request-Timeout)."
    )
    body_timeout_seconds: Annotated[float, OF_ALL, Panel.LIMITS] = Field(
        30, gt=0, description="Longest wait for a request's whole body."
    )
    key_requests_per_second: Annotated[float | None, OF_ALL, Panel.LIMITS] = Field(
        None, gt=0, description="Requests that each key may begin in a second; by default any number."
    )
    max_key_requests: Annotated[int | None, OF_ALL, Panel.LIMITS] = Field(
        None, ge=1, description="Requests of each key in work; by default as many as of all."
    )
    key_bytes_per_second: Annotated[int | None, OF_ALL, Panel.LIMITS] = Field(
        None, ge=1, description="Bytes of bodies that each key may send in a second; by default any number."
    )
    max_connections: Annotated[int | None, OF_ALL, Panel.LIMITS] = Field(
        None, ge=1, description="Connections in all; by default half the open files allowed, at most 4096."
    )
    head_timeout_seconds: Annotated[float, OF_ALL, Panel.LIMITS] = Field(
        10, gt=0, description="Longest wait for the head of a request."
    )
    idle_timeout_seconds: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        75, ge=1, description="Longest wait for the next request."
    )
    write_timeout_seconds: Annotated[float, OF_ALL, Panel.LIMITS] = Field(
        30, gt=0, description="Longest wait for a client to take the next 16 KiB of an answer."
    )
    max_texts: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        1024, ge=1, description="Texts in one /embed request."
    )
    max_characters: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        200_000, ge=1, description="Characters of one text."
    )
    max_documents: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        1024, ge=1, description="Documents in one /rerank request, or hits that one of /search re-ranks."
    )
    max_top_k: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(1000, ge=1, description="Hits of one search.")
    max_queries: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        100, ge=1, description="Queries in one /search request."
    )
    max_query_hits: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        10_000, ge=1, description="Hits of all queries of one /search request."
    )
    max_candidates: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        10_000, ge=1, description="Candidates of each side of one search."
    )
    max_request_tokens: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        524_288, ge=1, description="Tokens of the texts of one request to /embed or /rerank."
    )
    max_write_documents: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        1000, ge=1, description="Documents, or ids, of one write."
    )
    max_write_tokens: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        131_072, ge=1, description="Tokens of the documents of one write that are to be encoded."
    )
    max_page_documents: Annotated[int, OF_SERVE, Panel.LIMITS] = Field(
        1000, ge=1, description="Documents of one page of a collection."
    )
    flush_documents: Annotated[int, OF_SEARCH, Panel.LIMITS] = Field(
        16_384, ge=1, description="Written documents of a collection from which on they are published."
    )
    flush_bytes: Annotated[int, OF_SEARCH, Panel.LIMITS] = Field(
        1 << 28,
        ge=1,
        description="Bytes of a collection's written documents from which on they are published.",
    )
    flush_seconds: Annotated[float, OF_SEARCH, Panel.LIMITS] = Field(
        60, gt=0, description="Longest time from a write to its publication."
    )
    unpublished_documents: Annotated[int, OF_SEARCH, Panel.LIMITS] = Field(
        65_536, ge=1, description="Written documents of a collection that wait to be published; more get 429."
    )
    unpublished_bytes: Annotated[int, OF_SEARCH, Panel.LIMITS] = Field(
        1 << 30,
        ge=1,
        description="Memory of a collection's documents that wait to be published; more get 429.",
    )
    batch_tokens: Annotated[int | None, OF_ENCODER, Panel.LIMITS] = Field(
        None,
        ge=1,
        description="Tokens gathered into one batch; by default 2048, on a GPU what one pass there takes.",
    )
    query_cache_bytes: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        64 << 20, ge=0, description="Memory for encoded queries, which are not encoded again; 0: none."
    )
    queue_tokens: Annotated[int, OF_ALL, Panel.LIMITS] = Field(
        131_072, ge=1, description="Tokens accepted and not yet encoded; more get 429."
    )

    log_level: Annotated[Literal["debug", "info", "warning", "error"], OF_ALL, Panel.COMMON] = Field(
        "info", description="Least level logged."
    )
    log_format: Annotated[Literal["json", "text"] | None, OF_ALL, Panel.COMMON] = Field(
        None, description="Log lines as JSON or text; by default text on a terminal, else JSON."
    )
    slow_search_seconds: Annotated[float, OF_SERVE, Panel.LOGS] = Field(
        1, gt=0, description="Searches that take as long get a log line."
    )
    slow_search_text: Annotated[bool, OF_SERVE, Panel.LOGS] = Field(
        False, description="Log the text of a slow query, too."
    )
    audit: Annotated[Literal["off", "writes", "all"], OF_ALL, Panel.LOGS] = Field(
        "off",
        description="Audit entries: of changes and of requests that were turned away, or of all requests.",
    )
    audit_file: Annotated[Path | None, OF_AUDIT, Panel.LOGS] = Field(
        None, description="File of audit entries, a JSON object a line; by default they go to the log."
    )
    audit_required: Annotated[bool, OF_AUDIT_FILE, Panel.LOGS] = Field(
        False, description="Answer 503 where the entry of a request cannot be written to audit_file."
    )
    trace_endpoint: Annotated[str | None, OF_ALL, Panel.LOGS] = Field(
        None, description="OpenTelemetry collector for spans, such as http://localhost:4318; none: no spans."
    )
    trace_sampling: Annotated[float, OF_ALL, Panel.LOGS] = Field(
        1, ge=0, le=1, description="Share of requests traced, of those that bring no decision of their own."
    )
    ready_requires: Annotated[Literal["reads", "writes"], OF_SERVE, Panel.LOGS] = Field(
        "reads", description="What /ready asks for: reads (searching), or also writes (a disk with room)."
    )
    stall_seconds: Annotated[float, OF_ALL, Panel.LOGS] = Field(
        60, gt=0, description="Longest time of one batch in the encoder; past it /ready says no."
    )
    drain_seconds: Annotated[float, OF_ALL, Panel.LOGS] = Field(
        0, ge=0, description="Pause after SIGTERM in which /ready says no and requests are still served."
    )
    shutdown_seconds: Annotated[int, OF_ALL, Panel.LOGS] = Field(
        30, ge=0, description="Longest wait for accepted requests at the end."
    )
