"""What a deployment on Ray Serve consists of: a file of YAML or TOML, or the arguments of an application."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tercet.cluster.ray.errors import DeploymentFileError
from tercet.index.wording import reason_of
from tercet.service.exceptions import SettingsError
from tercet.service.invalid_values import message_of
from tercet.service.settings.reading import load_settings
from tercet.service.settings.settings import Settings

SUFFIXES = {".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}
NAME = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
LOCAL = "local"
OURS = ("host", "port", "data", "follow", "encoder_urls")  # settings that the deployment makes itself
# What only `tercet serve` does.
OF_SERVERS = ("publish_url", "ledger_url", "snapshot_store", "backend", "backend_url")

Cpus = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EncoderPart(_Part):
    """The encoders: how many, what each takes, and from how many waiting tokens there are to be more."""

    min_replicas: int = Field(default=1, ge=1)
    max_replicas: int = Field(default=1, ge=1)
    num_cpus: Cpus = 1
    num_gpus: float = Field(default=0, ge=0, allow_inf_nan=False)
    replica_tokens: int = Field(default=8192, ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError(
                f"max_replicas is {self.max_replicas}, less than min_replicas, {self.min_replicas}"
            )
        if self.num_gpus > 1 and not self.num_gpus.is_integer():
            raise ValueError(f"num_gpus is {self.num_gpus}: a part of one GPU, or whole ones")
        return self


class RayPart(_Part):
    """The Ray cluster: its address, or `local` for one of this machine, with as many CPUs and GPUs as there
    are by default. token_file: of the cluster's users; by default the one that Ray's own commands read.
    """

    address: str = Field(default=LOCAL, min_length=1)
    num_cpus: int | None = Field(default=None, ge=0)
    num_gpus: int | None = Field(default=None, ge=0)
    token_file: Path = Path("~/.ray/auth_token")


class ServeDeployment(_Part):
    """Encoders, and routers before servers that the setting `shards` names. settings: those of
    `tercet.toml`, for all parts; host, port: where clients come.
    """

    name: str = Field(default="tercet", pattern=f"^{NAME}$")
    checkpoint: str | None = None
    host: Literal["0.0.0.0", "::"] = Field(default="0.0.0.0", description="HAProxy takes all addresses.")  # noqa: S104 - a name to choose
    port: int = Field(default=8000, ge=1, le=65535)
    encoders: EncoderPart = EncoderPart()
    routers: int = Field(default=1, ge=1)
    router_cpus: Cpus = 1
    ray: RayPart = RayPart()
    settings: dict[str, Any] = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name in OURS:
            if name in self.settings:
                raise ValueError(f"settings: {name} is what the deployment makes itself; leave it out")
        for name in OF_SERVERS:
            if name in self.settings:
                raise ValueError(
                    f"settings: {name} is for tercet serve alone; give it to the servers of the shards"
                )
        if self.checkpoint is not None and "checkpoint" in self.settings:
            raise ValueError("give checkpoint once, above or among settings")
        if not self.settings.get("shards"):
            raise ValueError(
                "settings: shards is missing: start each shard as a server (tercet serve), and give their "
                "URLs, or that of their map"
            )
        return self

    @property
    def all_settings(self) -> dict[str, Any]:
        """The settings of all parts, with the checkpoint."""
        own = {} if self.checkpoint is None else {"checkpoint": self.checkpoint}
        return self.settings | own


def read_deployment(file: Path) -> ServeDeployment:
    """The deployment that a file describes. Raises DeploymentFileError."""
    kind = SUFFIXES.get(file.suffix.lower())
    if kind is None:
        raise DeploymentFileError(f"{file}: a deployment is a file of YAML (.yaml, .yml) or TOML (.toml)")
    try:
        values = _parsed(kind, file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DeploymentFileError(f"{file} cannot be read: {reason_of(error)}") from error
    except ValueError as error:
        raise DeploymentFileError(f"{file} is no {kind}: {error}") from error
    if not isinstance(values, Mapping):
        raise DeploymentFileError(f"{file} holds no names with values, such as name: tercet")
    return deployment_of(values, str(file))


def deployment_of(values: Mapping[str, Any], source: str) -> ServeDeployment:
    """A checked deployment. source: what it is called in messages. Raises DeploymentFileError."""
    try:
        found = ServeDeployment.model_validate(values)
        _check_settings(found.all_settings)
    except ValidationError as error:
        raise DeploymentFileError(f"{source}: {_first_fault(error)}") from error
    except SettingsError as error:
        raise DeploymentFileError(f"{source}: settings: {error}") from error
    return found


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raises SettingsError. Files of keys are looked for where they are used, which may be elsewhere."""
    files = [name for name in settings if name.endswith("_file")]
    for name in files:
        if name not in Settings.model_fields:
            raise SettingsError(f"unknown setting {name!r}")
    load_settings({name: value for name, value in settings.items() if name not in files})


def _parsed(kind: str, text: str) -> object:
    """Raises ValueError for what is not of this kind."""
    if kind == "TOML":
        return tomllib.loads(text)
    import yaml  # comes with ray

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _first_fault(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if not name:  # a rule about several
        return str(first["msg"]).removeprefix("Value error, ")
    return message_of(name, [dict(first)])
