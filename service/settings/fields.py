"""Every setting but limits and logs (`limits.py`): type, default, whom it concerns, and what it means.

Pages, flags and variables are made from all fields, in this order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode

from tercet.models.checkpoint import DEFAULT_CHECKPOINT
from tercet.service.settings.roles import (
    OF_ALL,
    OF_BACKEND,
    OF_BACKUPS,
    OF_COMMANDS,
    OF_ENCODER,
    OF_FOLLOWING,
    OF_LEDGERS,
    OF_PUBLISHING,
    OF_ROUTER,
    OF_SEARCH,
    OF_SERVE,
    OF_WORKERS_USE,
    Panel,
)

Names = Annotated[tuple[str, ...], NoDecode]
Secrets = Annotated[tuple[SecretStr, ...], NoDecode]


class SettingsFields(BaseSettings):
    """The first fields of `Settings`."""

    host: Annotated[str, OF_ALL, Panel.COMMON] = Field(
        "127.0.0.1", description="Address to listen on; :: is every one, of IPv6 and IPv4."
    )
    port: Annotated[int, OF_ALL, Panel.COMMON] = Field(
        8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one."
    )
    root_path: Annotated[str | None, OF_ALL, Panel.ACCESS] = Field(
        None,
        pattern=r"^(/[A-Za-z0-9._~-]+)+$",
        description="Path below which a proxy serves this server, such as /tercet. Requests may come with it "
        "or without.",
    )
    allowed_hosts: Annotated[Names, OF_ALL, Panel.ACCESS] = Field(
        (),
        description="Names that requests may give in Host, beside localhost and addresses; * is any. "
        "By default none on a loopback address, else any.",
    )
    cors_origins: Annotated[Names, OF_ALL, Panel.ACCESS] = Field(
        (),
        description="Origins of pages elsewhere, such as https://app.example.com, that browsers let call "
        "this server; * is any. By default none.",
    )
    checkpoint: Annotated[str, OF_ENCODER, Panel.COMMON] = Field(
        DEFAULT_CHECKPOINT, description="Encoder: multi-m3, minilm-m3, a folder, or a hub id."
    )
    max_checkpoints: Annotated[int, OF_SERVE, Panel.ENCODER] = Field(
        2,
        ge=0,
        description="Encoders beside the first that stay open, for collections and requests that name them.",
    )
    revision: Annotated[str | None, OF_ENCODER, Panel.ENCODER] = Field(
        None, description="Revision of a checkpoint named by hub id."
    )
    heads: Annotated[str | None, OF_ENCODER, Panel.ENCODER] = Field(
        None,
        description="A checkpoint whose sparse and ColBERT heads take the place of the encoder's own: a "
        "folder or a hub id, of the same width.",
    )
    mcls_every: Annotated[int | None, OF_ENCODER, Panel.ENCODER] = Field(
        None,
        ge=4,
        description="A CLS at every so many tokens of a text, and the mean of their states as its dense "
        "vector (MCLS), whatever the encoder was trained with.",
    )
    engine: Annotated[Literal["onnx", "native", "onnxruntime", "torch"], OF_ENCODER, Panel.COMMON] = Field(
        "onnx",
        description="What runs the encoder: native, kernels of our own for an int8 graph of BERT's shape on "
        "a CPU; onnxruntime, for any exported graph; torch, for the weights; or onnx, which is native where "
        "it can be, else onnxruntime.",
    )
    device: Annotated[str, OF_ENCODER, Panel.COMMON] = Field(
        "auto", description="Where the encoder runs: auto, cpu, cuda, cuda:1."
    )
    dense_device: Annotated[Literal["cpu", "gpu"], OF_SEARCH, Panel.ENCODER] = Field(
        "cpu", description="Where flat and IVF-PQ dense search runs: cpu or gpu, which takes FAISS for GPUs."
    )
    precision: Annotated[str | None, OF_ENCODER, Panel.ENCODER] = Field(
        None,
        description="Encoder precision; by default what the engine prefers, bfloat16 for torch on a GPU.",
    )
    threads: Annotated[int | None, OF_ENCODER, Panel.COMMON] = Field(
        None, ge=1, description="Encoder threads; by default the CPUs that the process may use."
    )
    data: Annotated[Path, OF_ALL, Panel.COMMON] = Field(
        Path("data"),
        description="Data root: collections/, sources/, adapters/, rerankers/ and jobs/ below it.",
    )
    adapters: Annotated[Path | None, OF_ENCODER, Panel.ENCODER] = Field(
        None, description="Folder of adapters; by default adapters/ below the data root."
    )
    rerankers: Annotated[Path | None, OF_SERVE, Panel.ENCODER] = Field(
        None, description="Folder of re-rankers; by default rerankers/ below the data root."
    )
    adapter_sessions: Annotated[int, OF_ENCODER, Panel.ENCODER] = Field(
        4, ge=1, description="Graphs of adapters kept open at a time (onnx)."
    )
    export_cache: Annotated[Path | None, OF_ENCODER, Panel.ENCODER] = Field(
        None,
        description="Folder of graphs of checkpoints that come without, exported at their first start; by "
        "default tercet/exports in the user's cache folder.",
    )
    api_keys: Annotated[Secrets, OF_ALL, Panel.ACCESS] = Field(
        (), description="Keys that may do everything, comma separated; none: open."
    )
    read_keys: Annotated[Secrets, OF_ALL, Panel.ACCESS] = Field(
        (), description="Keys that may read only, comma separated."
    )
    api_keys_file: Annotated[Path | None, OF_ALL, Panel.COMMON] = Field(
        None, description="File of keys that may do everything, one a line."
    )
    read_keys_file: Annotated[Path | None, OF_ALL, Panel.COMMON] = Field(
        None, description="File of keys that may read only, one a line."
    )
    keys_file: Annotated[Path | None, OF_ALL, Panel.ACCESS] = Field(
        None,
        description="File of keys that each have their own access, collections and limit, as JSON lines; "
        "read again when it changes.",
    )
    client_key: Annotated[SecretStr | None, OF_COMMANDS, Panel.ACCESS] = Field(
        None, description="Key that commands send to the server that --url names."
    )
    client_key_file: Annotated[Path | None, OF_COMMANDS, Panel.ACCESS] = Field(
        None, description="File that holds the key that commands send to a server."
    )

    follow: Annotated[str | None, OF_SEARCH, Panel.COMMON] = Field(
        None,
        description="URL of snapshots that this server follows and serves, read only: of one collection, or "
        "of a folder of several, such as s3://bucket/articles.",
    )
    follow_seconds: Annotated[float, OF_FOLLOWING, Panel.CLUSTER] = Field(
        5,
        gt=0,
        description="Pause between two looks for a newer snapshot to follow, or for a newer map of shards.",
    )
    publish_url: Annotated[str | None, OF_SEARCH, Panel.COMMON] = Field(
        None,
        description="URL below which this server publishes each of its collections whenever it changed, in a "
        "folder of its name, for others to follow.",
    )
    ledger_url: Annotated[str | None, OF_SEARCH, Panel.CLUSTER] = Field(
        None,
        description="URL below which each write to this server's collections is before it is acknowledged, "
        "so that none is lost with the disk. They are published there, too, as publish_url says.",
    )
    lease_seconds: Annotated[float | None, OF_LEDGERS, Panel.CLUSTER] = Field(
        None,
        ge=1,
        description="The server that writes gives signs of life at ledger_url. One that has follow, too, "
        "becomes the writer after so long without a sign.",
    )
    publish_seconds: Annotated[float, OF_PUBLISHING, Panel.CLUSTER] = Field(
        60, gt=0, description="Pause between two looks for collections that changed and are to be published."
    )
    publish_keep: Annotated[int | None, OF_PUBLISHING, Panel.CLUSTER] = Field(
        None,
        ge=1,
        description="How many of the newest published snapshots of each collection stay; of the others those "
        "go, once a day, that are older than 24 hours. By default all stay.",
    )
    backup_hours: Annotated[float | None, OF_SEARCH, Panel.CLUSTER] = Field(
        None,
        gt=0,
        description="The server backs up each collection whose last backup is so old. By default it makes no "
        "backups by itself.",
    )
    backup_keep: Annotated[int | None, OF_BACKUPS, Panel.CLUSTER] = Field(
        None,
        ge=1,
        description="How many of the newest backups of each collection stay when the server makes one, those "
        "made by hand included. By default all stay.",
    )
    snapshot_store: Annotated[str | None, OF_SEARCH, Panel.CLUSTER] = Field(
        None,
        description="URL of an object store below which this server, a shard, publishes its collections and "
        "fetches others when a re-sharding asks for it.",
    )

    encoder_urls: Annotated[Names, OF_SERVE, Panel.COMMON] = Field(
        (), description="Encoder workers to use instead of a local encoder."
    )
    encoder_key: Annotated[SecretStr | None, OF_SERVE, Panel.CLUSTER] = Field(
        None, description="Key that is sent to encoder workers."
    )
    encoder_key_file: Annotated[Path | None, OF_WORKERS_USE, Panel.CLUSTER] = Field(
        None, description="File that holds the key for encoder workers."
    )
    encoder_timeout_seconds: Annotated[float, OF_WORKERS_USE, Panel.CLUSTER] = Field(
        60, gt=0, description="Longest wait for one worker's answer."
    )
    encoder_probe_seconds: Annotated[float, OF_WORKERS_USE, Panel.CLUSTER] = Field(
        1, gt=0, description="Pause between two questions to a worker whether it is ready."
    )
    encoder_probe_timeout_seconds: Annotated[float, OF_WORKERS_USE, Panel.CLUSTER] = Field(
        2,
        gt=0,
        description="Longest wait for a worker's word that it is ready; without two in a row it is down.",
    )
    shards: Annotated[Names, OF_ROUTER, Panel.COMMON] = Field(
        (),
        description="Servers that hold the collections, each a part of every one; this server then is the "
        "router before them. Comma-separated URLs, always in the same order, those of a shard's replicas "
        "behind its own, divided by vertical bars; or the URL of a build in shards whose map names them.",
    )
    shards_key: Annotated[SecretStr | None, OF_ROUTER, Panel.CLUSTER] = Field(
        None, description="Key that is sent to shards; it may do everything there."
    )
    shards_key_file: Annotated[Path | None, OF_ROUTER, Panel.CLUSTER] = Field(
        None, description="File that holds the key for shards."
    )
    shards_timeout_seconds: Annotated[float, OF_ROUTER, Panel.CLUSTER] = Field(
        10,
        gt=0,
        description="Longest wait for a shard's answer where the request has no time limit of its own, as "
        "lists of collections and changes of aliases.",
    )

    ray_address: Annotated[str | None, OF_SEARCH, Panel.CLUSTER] = Field(
        None,
        description="Ray cluster, as HOST:PORT, of builds with --ray and of jobs with the engine ray; these "
        "are refused without one.",
    )
    ray_storage: Annotated[str | None, OF_SEARCH, Panel.CLUSTER] = Field(
        None,
        description="Object store that Ray's workers reach, too (file://, s3://, gs://, az://), for what is "
        "under way.",
    )
    backend: Annotated[Literal["qdrant", "milvus"] | None, OF_BACKEND, Panel.CLUSTER] = Field(
        None,
        description="System that holds the collections: it proposes candidates, and this server encodes, "
        "writes and re-ranks.",
    )
    backend_url: Annotated[str | None, OF_BACKEND, Panel.CLUSTER] = Field(
        None,
        description="Where the system that holds the collections is: a URL, the folder of Qdrant's local "
        "mode, or the .db file of Milvus Lite.",
    )
    backend_key: Annotated[SecretStr | None, OF_BACKEND, Panel.CLUSTER] = Field(
        None, description="Key, or token, that is sent to the backend."
    )
    backend_key_file: Annotated[Path | None, OF_BACKEND, Panel.CLUSTER] = Field(
        None, description="File that holds the key, or token, for the backend."
    )
    backend_timeout_seconds: Annotated[int, OF_BACKEND, Panel.CLUSTER] = Field(
        30,
        ge=1,
        description="Longest wait for an answer of the backend. Twice as long, and a minute at least, "
        "another server waits before it takes over writing.",
    )
    backend_shards: Annotated[int | None, OF_BACKEND, Panel.CLUSTER] = Field(
        None,
        ge=1,
        description="Shards of a collection that is made in the backend, by default its own number.",
    )
    backend_replicas: Annotated[int | None, OF_BACKEND, Panel.CLUSTER] = Field(
        None, ge=1, description="Copies of each shard in the backend, by default its own number."
    )
    backend_consistency: Annotated[str | None, OF_BACKEND, Panel.CLUSTER] = Field(
        None,
        description="Consistency of reads in the backend, by default majority for qdrant (also quorum, all, "
        "or a number of replicas) and Strong for milvus (also Session, Bounded, Eventually).",
    )
