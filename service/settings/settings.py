"""Every setting: name, default, unit, meaning. With `reading.py` alone it reads the environment.

A setting comes from, in order of precedence: a flag of `tercet serve` or `tercet encoder`, a `TERCET_*`
variable, `tercet.toml` in the working folder, the default below. `docs/settings.md` lists them all.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, SecretStr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tercet.index.live.records import LiveLimits
from tercet.models.checkpoint import DEFAULT_CHECKPOINT
from tercet.service.exceptions import SettingsError
from tercet.service.keys.keys import KEY_SETTINGS, is_key, read_keys
from tercet.service.settings.roles import (
    OF_ALL,
    OF_AUDIT,
    OF_AUDIT_FILE,
    OF_BACKEND,
    OF_ENCODER,
    OF_FOLLOWING,
    OF_PUBLISHING,
    OF_ROUTER,
    OF_SEARCH,
    OF_SERVE,
    OF_WORKERS_USE,
    OF_WRITES,
    Role,
)
from tercet.service.settings.server_urls import SERVERS, servers_of_shards, url_of

PREFIX = "TERCET_"
CONFIG_FILE = Path("tercet.toml")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")  # a scheme, a host, and where it has one a port
STORES = ("file://", "s3://", "gs://", "az://")  # schemes of object stores

Names = Annotated[tuple[str, ...], NoDecode]
Secrets = Annotated[tuple[SecretStr, ...], NoDecode]


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may ask for."""

    texts: int
    characters: int
    top_k: int
    queries: int
    query_hits: int
    candidates: int
    documents: int
    request_tokens: int
    write_documents: int
    write_tokens: int
    page_documents: int


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """How encoder workers are asked: the key to send, the longest wait for an answer, and for a probe's.

    probe_seconds: pause between two probes of a worker.
    """

    key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 60
    probe_seconds: float = 1
    probe_timeout_seconds: float = 2


class Settings(BaseSettings):
    """All settings of the service, checked; secrets never appear in its printed form."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        toml_file=CONFIG_FILE,
        frozen=True,
        hide_input_in_errors=True,
    )

    _flags: frozenset[str] = PrivateAttr(frozenset())

    host: Annotated[str, OF_ALL] = Field(
        "127.0.0.1", description="Address to listen on; :: is every one, of IPv6 and IPv4."
    )
    port: Annotated[int, OF_ALL] = Field(
        8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one."
    )
    allowed_hosts: Annotated[Names, OF_ALL] = Field(
        (),
        description="Names that requests may give in Host, beside localhost and addresses; * is any. "
        "By default none on a loopback address, else any.",
    )
    cors_origins: Annotated[Names, OF_ALL] = Field(
        (),
        description="Origins of pages elsewhere, such as https://app.example.com, that browsers let call "
        "this server; * is any. By default none.",
    )
    checkpoint: Annotated[str, OF_ENCODER] = Field(
        DEFAULT_CHECKPOINT, description="Encoder: multi-m3, minilm-m3, a folder, or a hub id."
    )
    max_checkpoints: Annotated[int, OF_SERVE] = Field(
        2,
        ge=0,
        description="Encoders beside this one that stay open, for collections and requests that name them.",
    )
    revision: Annotated[str | None, OF_ENCODER] = Field(
        None, description="Revision of a checkpoint named by hub id."
    )
    heads: Annotated[str | None, OF_ENCODER] = Field(
        None,
        description="A checkpoint whose sparse and ColBERT heads take the place of the encoder's own: a "
        "folder or a hub id, of the same width.",
    )
    engine: Annotated[Literal["onnx", "native", "onnxruntime", "torch"], OF_ENCODER] = Field(
        "onnx",
        description="What runs the encoder: onnx is an exported graph, by kernels of our own where they can "
        "(int8 on a CPU, the shape of BERT), else by onnxruntime; native and onnxruntime are one of the two; "
        "torch takes the weights.",
    )
    device: Annotated[str, OF_ENCODER] = Field(
        "auto", description="Where the encoder runs: auto, cpu, cuda, cuda:1."
    )
    dense_device: Annotated[Literal["cpu", "gpu"], OF_SEARCH] = Field(
        "cpu", description="Where flat and IVF-PQ dense search runs: cpu or gpu, which takes FAISS for GPUs."
    )
    precision: Annotated[str | None, OF_ENCODER] = Field(
        None,
        description="Encoder precision; by default what the engine prefers, bfloat16 for torch on a GPU.",
    )
    threads: Annotated[int | None, OF_ENCODER] = Field(
        None, ge=1, description="Encoder threads; by default the CPUs that the process may use."
    )
    data: Annotated[Path, OF_ALL] = Field(
        Path("data"), description="Data root: collections/, sources/, adapters/ and jobs/ below it."
    )
    adapters: Annotated[Path | None, OF_ENCODER] = Field(
        None, description="Folder of adapters; by default adapters/ below the data root."
    )
    adapter_sessions: Annotated[int, OF_ENCODER] = Field(
        4, ge=1, description="Graphs of adapters kept open at a time (onnx)."
    )
    export_cache: Annotated[Path | None, OF_ENCODER] = Field(
        None,
        description="Folder of graphs of checkpoints that come without, exported at their first start; by "
        "default tercet/exports in the user's cache folder.",
    )
    api_keys: Annotated[Secrets, OF_ALL] = Field(
        (), description="Keys that may do everything, comma separated; none: open."
    )
    read_keys: Annotated[Secrets, OF_ALL] = Field((), description="Keys that may read only, comma separated.")
    api_keys_file: Annotated[Path | None, OF_ALL] = Field(
        None, description="File of more keys that may do everything, one a line."
    )
    read_keys_file: Annotated[Path | None, OF_ALL] = Field(
        None, description="File of more keys that may read only, one a line."
    )
    keys_file: Annotated[Path | None, OF_ALL] = Field(
        None,
        description="File of keys that each have their own access, collections and limit, as JSON lines; "
        "read again when it changes.",
    )

    follow: Annotated[str | None, OF_SEARCH] = Field(
        None,
        description="URL of snapshots that this server follows and serves, read only: of one collection, or "
        "of a folder of several, such as s3://bucket/articles.",
    )
    follow_seconds: Annotated[float, OF_FOLLOWING] = Field(
        5,
        gt=0,
        description="Pause between two looks for a newer snapshot there, or for a newer map of shards.",
    )
    publish_url: Annotated[str | None, OF_SEARCH] = Field(
        None,
        description="URL below which this server publishes each of its collections whenever it changed, in a "
        "folder of its name, for others to follow.",
    )
    publish_seconds: Annotated[float, OF_PUBLISHING] = Field(
        60, gt=0, description="Pause between two looks for collections that changed, to publish them there."
    )
    publish_keep: Annotated[int | None, OF_PUBLISHING] = Field(
        None,
        ge=1,
        description="How many of the newest snapshots of each collection stay there; of the others those go, "
        "once a day, that are older than 24 hours. By default all stay.",
    )
    snapshot_store: Annotated[str | None, OF_SEARCH] = Field(
        None,
        description="URL of an object store below which this server, a shard, publishes its collections and "
        "fetches others when a re-sharding asks for it.",
    )

    encoder_urls: Annotated[Names, OF_SERVE] = Field(
        (), description="Encoder workers to use instead of a local encoder."
    )
    encoder_key: Annotated[SecretStr | None, OF_SERVE] = Field(
        None, description="Key that is sent to encoder workers."
    )
    encoder_key_file: Annotated[Path | None, OF_WORKERS_USE] = Field(
        None, description="File that holds this key instead."
    )
    encoder_timeout_seconds: Annotated[float, OF_WORKERS_USE] = Field(
        60, gt=0, description="Longest wait for one worker's answer."
    )
    encoder_probe_seconds: Annotated[float, OF_WORKERS_USE] = Field(
        1, gt=0, description="Pause between two questions to a worker whether it is ready."
    )
    encoder_probe_timeout_seconds: Annotated[float, OF_WORKERS_USE] = Field(
        2, gt=0, description="Longest wait for its answer; without two in a row the worker is down."
    )
    shards: Annotated[Names, OF_ROUTER] = Field(
        (),
        description="Servers that hold the collections, each a part of every one; this server then is the "
        "router before them. Comma-separated URLs, always in the same order, those of a shard's replicas "
        "behind its own, divided by vertical bars; or the URL of a build in shards whose map names them.",
    )
    shards_key: Annotated[SecretStr | None, OF_ROUTER] = Field(
        None, description="Key that is sent to shards; it may do everything there."
    )
    shards_key_file: Annotated[Path | None, OF_ROUTER] = Field(
        None, description="File that holds this key instead."
    )
    shards_timeout_seconds: Annotated[float, OF_ROUTER] = Field(
        10,
        gt=0,
        description="Longest wait for a shard's answer where the request has no time limit of its own, as "
        "lists of collections and changes of aliases.",
    )

    ray_address: Annotated[str | None, OF_SEARCH] = Field(
        None,
        description="Ray cluster, as HOST:PORT, of builds with --ray and of jobs with the engine ray; these "
        "are refused without one.",
    )
    ray_storage: Annotated[str | None, OF_SEARCH] = Field(
        None,
        description="Object store that its workers reach, too (file://, s3://, gs://, az://), for what is "
        "under way.",
    )
    backend: Annotated[Literal["qdrant", "milvus"] | None, OF_BACKEND] = Field(
        None,
        description="Engine that holds the collections, as tercet collection export wrote them: it proposes "
        "candidates, and this server encodes and re-ranks.",
    )
    backend_url: Annotated[str | None, OF_BACKEND] = Field(
        None,
        description="Where that engine is: a URL, the folder of Qdrant's local mode, or the .db file of "
        "Milvus Lite.",
    )
    backend_key: Annotated[SecretStr | None, OF_BACKEND] = Field(
        None, description="Key, or token, that is sent to the engine."
    )
    backend_key_file: Annotated[Path | None, OF_BACKEND] = Field(
        None, description="File that holds this key instead."
    )
    backend_timeout_seconds: Annotated[int, OF_BACKEND] = Field(
        30, ge=1, description="Longest wait for an answer of the engine."
    )

    max_body_bytes: Annotated[int, OF_ALL] = Field(8 << 20, ge=1, description="Largest request body.")
    max_bodies_bytes: Annotated[int, OF_ALL] = Field(
        64 << 20, ge=1, description="Bytes of all bodies that are arriving or in work; more get 429."
    )
    max_import_bytes: Annotated[int, OF_WRITES] = Field(
        1 << 30, ge=1, description="Largest file of POST /collections/{name}/import."
    )
    compression: Annotated[bool, OF_ALL] = Field(
        True, description="Compress answers for clients that accept zstd or gzip."
    )
    max_concurrent_requests: Annotated[int, OF_ALL] = Field(
        512, ge=1, description="Requests in work; more get 429."
    )
    max_wait_seconds: Annotated[float, OF_ALL] = Field(
        2, gt=0, description="Longest a request should wait for its work; 429 where half of it is predicted."
    )
    request_timeout_seconds: Annotated[float, OF_ALL] = Field(
        60, gt=0, description="Longest a request may wait; a client may ask for less (X-Request-Timeout)."
    )
    body_timeout_seconds: Annotated[float, OF_ALL] = Field(
        30, gt=0, description="Longest wait for a request's whole body."
    )
    key_requests_per_second: Annotated[float | None, OF_ALL] = Field(
        None, gt=0, description="Requests that each key may begin in a second; by default any number."
    )
    max_key_requests: Annotated[int | None, OF_ALL] = Field(
        None, ge=1, description="Requests of each key in work; by default as many as of all."
    )
    key_bytes_per_second: Annotated[int | None, OF_ALL] = Field(
        None, ge=1, description="Bytes of bodies that each key may send in a second; by default any number."
    )
    max_connections: Annotated[int | None, OF_ALL] = Field(
        None, ge=1, description="Connections in all; by default half the open files allowed, at most 4096."
    )
    head_timeout_seconds: Annotated[float, OF_ALL] = Field(
        10, gt=0, description="Longest wait for the head of a request."
    )
    idle_timeout_seconds: Annotated[int, OF_ALL] = Field(
        75, ge=1, description="Longest wait for the next request."
    )
    write_timeout_seconds: Annotated[float, OF_ALL] = Field(
        30, gt=0, description="Longest wait for a client to take the next 16 KiB of an answer."
    )
    max_texts: Annotated[int, OF_ALL] = Field(1024, ge=1, description="Texts in one /embed request.")
    max_characters: Annotated[int, OF_SERVE] = Field(200_000, ge=1, description="Characters of one text.")
    max_documents: Annotated[int, OF_SERVE] = Field(
        1024, ge=1, description="Documents in one /rerank request."
    )
    max_top_k: Annotated[int, OF_SERVE] = Field(1000, ge=1, description="Hits of one search.")
    max_queries: Annotated[int, OF_SERVE] = Field(100, ge=1, description="Queries in one /search request.")
    max_query_hits: Annotated[int, OF_SERVE] = Field(
        10_000, ge=1, description="Hits of all queries of one /search request."
    )
    max_candidates: Annotated[int, OF_SERVE] = Field(
        10_000, ge=1, description="Candidates of each side of one search."
    )
    max_request_tokens: Annotated[int, OF_ALL] = Field(
        524_288, ge=1, description="Tokens of the texts of one request to /embed or /rerank."
    )
    max_write_documents: Annotated[int, OF_WRITES] = Field(
        1000, ge=1, description="Documents, or ids, of one write."
    )
    max_write_tokens: Annotated[int, OF_WRITES] = Field(
        131_072, ge=1, description="Tokens of the documents of one write that are to be encoded."
    )
    max_page_documents: Annotated[int, OF_SERVE] = Field(
        1000, ge=1, description="Documents of one page of a collection."
    )
    flush_documents: Annotated[int, OF_SEARCH] = Field(
        16_384, ge=1, description="Written documents of a collection from which on they are published."
    )
    flush_bytes: Annotated[int, OF_SEARCH] = Field(1 << 28, ge=1, description="Their bytes, likewise.")
    flush_seconds: Annotated[float, OF_SEARCH] = Field(
        60, gt=0, description="Longest time from a write to its publication."
    )
    unpublished_documents: Annotated[int, OF_SEARCH] = Field(
        65_536, ge=1, description="Written documents of a collection that wait to be published; more get 429."
    )
    unpublished_bytes: Annotated[int, OF_SEARCH] = Field(
        1 << 30, ge=1, description="Their bytes in memory, likewise."
    )
    batch_tokens: Annotated[int | None, OF_ENCODER] = Field(
        None,
        ge=1,
        description="Tokens gathered into one batch; by default 2048, on a GPU what one pass there takes.",
    )
    query_cache_bytes: Annotated[int, OF_ALL] = Field(
        64 << 20, ge=0, description="Memory for encoded queries, which are not encoded again; 0: none."
    )
    queue_tokens: Annotated[int, OF_ALL] = Field(
        131_072, ge=1, description="Tokens accepted and not yet encoded; more get 429."
    )

    log_level: Annotated[Literal["debug", "info", "warning", "error"], OF_ALL] = Field(
        "info", description="Least level logged."
    )
    log_format: Annotated[Literal["json", "text"], OF_ALL] = Field(
        "json", description="One JSON object or one plain line."
    )
    slow_search_seconds: Annotated[float, OF_SERVE] = Field(
        1, gt=0, description="Searches that take as long get a log line."
    )
    slow_search_text: Annotated[bool, OF_SERVE] = Field(
        False, description="Log the text of a slow query, too."
    )
    audit: Annotated[Literal["off", "writes", "all"], OF_ALL] = Field(
        "off",
        description="Audit entries: of changes and of requests that were turned away, or of all requests.",
    )
    audit_file: Annotated[Path | None, OF_AUDIT] = Field(
        None, description="File of audit entries, a JSON object a line; by default they go to the log."
    )
    audit_required: Annotated[bool, OF_AUDIT_FILE] = Field(
        False, description="Answer 503 where the entry of a request cannot be written to audit_file."
    )
    trace_endpoint: Annotated[str | None, OF_ALL] = Field(
        None, description="OpenTelemetry collector for spans, such as http://localhost:4318; none: no spans."
    )
    trace_sampling: Annotated[float, OF_ALL] = Field(
        1, ge=0, le=1, description="Share of requests traced, of those that bring no decision of their own."
    )
    ready_requires: Annotated[Literal["reads", "writes"], OF_SERVE] = Field(
        "reads", description="What /ready asks for: reads (searching), or also writes (a disk with room)."
    )
    stall_seconds: Annotated[float, OF_ALL] = Field(
        60, gt=0, description="Longest time of one batch in the encoder; past it /ready says no."
    )
    drain_seconds: Annotated[float, OF_ALL] = Field(
        0, ge=0, description="Pause after SIGTERM in which /ready says no and requests are still served."
    )
    shutdown_seconds: Annotated[int, OF_ALL] = Field(
        30, ge=0, description="Longest wait for accepted requests at the end."
    )

    @model_validator(mode="before")
    @classmethod
    def _keys_of_files(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Keys of files join those given; of that for workers, for shards and for a backend there is one.
        Raises SettingsError.
        """
        for name in ("api_keys", "read_keys"):
            if file := values.get(f"{name}_file"):
                values[name] = [*_items(values.get(name, ())), *read_keys(Path(file))]
        for name, others in (
            ("encoder_key", "workers"),
            ("shards_key", "shards"),
            ("backend_key", "backends"),
        ):
            if file := values.get(f"{name}_file"):
                if values.get(name):
                    raise SettingsError(f"give {name} or {name}_file, not both: {others} are sent one key")
                values[name], *more = read_keys(Path(file))
                if more:
                    raise SettingsError(f"key file {file} holds {1 + len(more)} keys; {others} are sent one")
        return values

    @field_validator(
        "api_keys", "read_keys", "encoder_urls", "shards", "allowed_hosts", "cors_origins", mode="before"
    )
    @classmethod
    def _split(cls, value: object) -> object:
        return _items(value)

    @field_validator("encoder_urls")
    @classmethod
    def _urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(url_of, value))

    @field_validator("shards")
    @classmethod
    def _servers_or_map(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) == 1 and value[0].startswith(STORES):
            return value
        return tuple(SERVERS.join(servers) for servers in servers_of_shards(value))

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not ORIGIN.fullmatch(origin.lower()):
                raise ValueError(
                    f"{origin!r} is no origin; write it as https://app.example.com, or * for any"
                )
        return tuple(map(str.lower, value))

    @model_validator(mode="after")
    def _one_place_of_collections(self) -> Settings:
        if (self.backend is None) != (self.backend_url is None):
            raise SettingsError("backend and backend_url go together: give both, or none")
        given = [name for name in ("shards", "follow", "backend") if getattr(self, name)]
        if len(given) > 1:
            raise SettingsError(f"collections have one place: give {' or '.join(given)}, not both")
        for name in ("publish_url", "snapshot_store"):
            if given and getattr(self, name) is not None:
                raise SettingsError(
                    f"{name} publishes a server's own collections, and with {given[0]} it has none: give it "
                    "to the servers that have them"
                )
        return self

    @field_validator("backend_url")
    @classmethod
    def _engine(cls, value: str | None) -> str | None:
        return url_of(value) if value is not None and "://" in value else value

    @field_validator("trace_endpoint")
    @classmethod
    def _endpoint(cls, value: str | None) -> str | None:
        return None if value is None else url_of(value)

    @field_validator(*KEY_SETTINGS)
    @classmethod
    def _keys(cls, value: Any) -> Any:
        for secret in value if isinstance(value, tuple) else (value,):
            if secret is not None and not is_key(secret.get_secret_value()):
                raise ValueError("a key must be printable ASCII without spaces")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    def require_needed(self) -> None:
        """Of a server alone: raises SettingsError for a setting that does nothing, as another is missing."""
        for name, role in ROLES.items():
            needed = role.needs
            if needed is None:
                continue
            value = getattr(self, name)
            asked = value != type(self).model_fields[name].default
            if asked and getattr(self, needed) in (None, "off"):
                raise SettingsError(
                    f"setting {name} ({PREFIX}{name.upper()}) is {value}, and does nothing without {needed}: "
                    "give that too, or unset it"
                )

    @property
    def flags(self) -> frozenset[str]:
        """The settings that were given as flags of this very command."""
        return self._flags

    @property
    def adapters_folder(self) -> Path:
        """The folder of adapters."""
        return self.data / "adapters" if self.adapters is None else self.adapters

    @property
    def export_cache_folder(self) -> Path:
        """The folder of exported graphs."""
        if self.export_cache is not None:
            return self.export_cache
        of_user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(of_user).expanduser() / "tercet" / "exports"

    @property
    def needs_key(self) -> bool:
        """Whether requests must bear a key."""
        return bool(self.api_keys or self.read_keys or self.keys_file)

    @property
    def encoder_environment(self) -> dict[str, str]:
        """Variables that give a child process the same encoder; they hold the workers' key or its file.

        Such a child answers no requests, so they take from it the keys that requests bear.
        """
        values = {name: getattr(self, name) for name, role in ROLES.items() if role.encodes}
        keys = ("api_keys", "api_keys_file", "read_keys", "read_keys_file", "keys_file")
        values |= dict.fromkeys(keys, "")
        if self.encoder_key is not None and self.encoder_key_file is None:
            values["encoder_key"] = self.encoder_key.get_secret_value()
        values["encoder_urls"] = ",".join(self.encoder_urls)
        return {f"{PREFIX}{name.upper()}": str(value) for name, value in values.items() if value is not None}

    @property
    def ray_environment(self) -> dict[str, str]:
        """Variables that give a child process the same Ray cluster."""
        values = {"ray_address": self.ray_address, "ray_storage": self.ray_storage}
        return {f"{PREFIX}{name.upper()}": value for name, value in values.items() if value is not None}

    @property
    def encodes_on_ray(self) -> bool:
        """Whether jobs may be built on Ray: there is a cluster, and its workers can open the encoder."""
        return None not in (self.ray_address, self.ray_storage) and not self.encoder_urls

    @property
    def worker_access(self) -> WorkerAccess:
        """How encoder workers are asked."""
        return WorkerAccess(
            key=None if self.encoder_key is None else self.encoder_key.get_secret_value(),
            timeout_seconds=self.encoder_timeout_seconds,
            probe_seconds=self.encoder_probe_seconds,
            probe_timeout_seconds=self.encoder_probe_timeout_seconds,
        )

    @property
    def live_limits(self) -> LiveLimits:
        """How much of what was written waits in memory to be published."""
        return LiveLimits(
            flush_documents=self.flush_documents,
            flush_bytes=self.flush_bytes,
            flush_seconds=self.flush_seconds,
            memory_documents=self.unpublished_documents,
            memory_bytes=self.unpublished_bytes,
        )

    @property
    def request_limits(self) -> RequestLimits:
        """What one request may ask for."""
        return RequestLimits(
            texts=self.max_texts,
            characters=self.max_characters,
            top_k=self.max_top_k,
            queries=self.max_queries,
            query_hits=self.max_query_hits,
            candidates=self.max_candidates,
            documents=self.max_documents,
            request_tokens=self.max_request_tokens,
            write_documents=self.max_write_documents,
            write_tokens=self.max_write_tokens,
            page_documents=self.max_page_documents,
        )


def _role(name: str) -> Role:
    """The role that the annotation of a setting says."""
    (role,) = (note for note in Settings.model_fields[name].metadata if isinstance(note, Role))
    return role


ROLES = {name: _role(name) for name in Settings.model_fields}


def _items(value: Any) -> Any:
    """Comma separated text as a list, without blanks around items and empty items; else the value."""
    return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value
