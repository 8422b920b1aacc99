"""Settings: where they come from, and what is wrong with them. With `reading.py` it reads the environment.

A setting comes from, in order of precedence: a flag of `tercet serve` or `tercet encoder`, a `TERCET_*`
variable, `tercet.toml` in the working folder, the default in `fields.py`. `docs/settings.md` lists them all.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tercet.index.live.records import LiveLimits
from tercet.index.wording import shown
from tercet.service.exceptions import SettingsError
from tercet.service.keys.keys import KEY_SETTINGS, is_key, read_keys
from tercet.service.settings.limits import LimitFields
from tercet.service.settings.roles import Role
from tercet.service.settings.server_urls import SERVERS, servers_of_shards, url_of

PREFIX = "TERCET_"
CONFIG_FILE = Path("tercet.toml")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")  # a scheme, a host, and where it has one a port
STORES = ("file://", "s3://", "gs://", "az://")  # schemes of object stores

log = logging.getLogger("tercet")


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


class Settings(LimitFields):
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
            ("client_key", "servers"),
        ):
            if file := values.get(f"{name}_file"):
                if values.get(name):
                    raise SettingsError(f"give {name} or {name}_file, not both: {others} are sent one key")
                values[name], *more = read_keys(Path(file))
                if more:
                    raise SettingsError(f"key file {file} holds {1 + len(more)} keys; {others} are sent one")
        return values

    @model_validator(mode="before")
    @classmethod
    def _as_meant(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Without the blanks around a value, and without what Kubernetes tells of a Service named `tercet`.

        Of validators of this kind the last one comes first.
        """
        stripped = {
            name: value.strip() if isinstance(value, str) else value for name, value in values.items()
        }
        if str(stripped.get("port")).startswith("tcp://"):
            log.warning(
                "%sPORT is %s, the address that Kubernetes gives of a Service, and no port: passed over",
                PREFIX,
                stripped.pop("port"),
            )
        if stripped.get("ledger_url"):
            stripped.setdefault("publish_url", stripped["ledger_url"])
        return stripped

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
    def _single_collection_source(self) -> Settings:
        if (self.backend is None) != (self.backend_url is None):
            raise SettingsError("backend and backend_url go together: give both, or none")
        given = [name for name in ("shards", "follow", "backend") if getattr(self, name)]
        if len(given) > 1:
            raise SettingsError(f"collections have one place: give {' or '.join(given)}, not both")
        if self.ledger_url not in (None, self.publish_url):
            raise SettingsError(
                f"ledger_url is {self.ledger_url}, and publish_url is {self.publish_url}: a ledger goes on "
                "from what is published beside it, so give one URL, or ledger_url alone"
            )
        if self.follow is not None and self.ledger_url is not None and self.lease_seconds is not None:
            if self.follow.rstrip("/") != self.ledger_url.rstrip("/"):
                raise SettingsError(
                    f"follow is {self.follow}, and ledger_url is {self.ledger_url}: a server that is to take "
                    "over follows the URL of the ledger; give one URL for both"
                )
            return self
        for name in ("ledger_url", "publish_url", "snapshot_store"):
            if given and getattr(self, name) is not None:
                may_stand_by = name == "ledger_url" and self.follow is not None
                stands_by = ", or lease_seconds, too, to stand by for the server that writes"
                raise SettingsError(
                    f"{name} publishes a server's own collections, and with {given[0]} it has none: give it "
                    f"to the servers that have them{stands_by if may_stand_by else ''}"
                )
        return self

    @property
    def stands_by(self) -> bool:
        """Whether the server follows until it is to write."""
        return self.follow is not None and self.ledger_url is not None

    @property
    def as_follower(self) -> Settings:
        """Those of a server that stands by."""
        return self.model_copy(update={"ledger_url": None, "publish_url": None})

    @property
    def as_writer(self) -> Settings:
        """Those of a server that stood by, once it writes."""
        return self.model_copy(update={"follow": None})

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
        """Raises SettingsError for a server's setting that does nothing, as another is missing."""
        for name, role in ROLES.items():
            needed = role.needs
            if needed is None:
                continue
            value = getattr(self, name)
            is_set = value != type(self).model_fields[name].default
            if is_set and getattr(self, needed) in (None, "off"):
                raise SettingsError(
                    f"setting {name} ({PREFIX}{name.upper()}) is {shown(value)}, and does nothing without "
                    f"{needed}: give that too, or unset it"
                )

    @property
    def flags(self) -> frozenset[str]:
        """The settings that were given as flags of this very command."""
        return self._flags

    @property
    def names_encoder(self) -> bool:
        """Whether flags of this very command say which encoder is to be opened, whatever a collection has."""
        return bool(self._flags & {"checkpoint", "heads", "mcls_every"})

    @property
    def adapters_folder(self) -> Path:
        """The folder of adapters."""
        return self.data / "adapters" if self.adapters is None else self.adapters

    @property
    def rerankers_folder(self) -> Path:
        """The folder of re-rankers."""
        return self.data / "rerankers" if self.rerankers is None else self.rerankers

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
        keys = ("api_keys", "read_keys", "client_key")
        values |= dict.fromkeys([*keys, *(f"{name}_file" for name in keys), "keys_file"], "")
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
