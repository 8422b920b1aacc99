"""Whether the encoder, here or at workers, encodes."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from tercet.cli.doctor.findings import Finding
from tercet.cli.output import megabytes
from tercet.index.wording import reason_of

if TYPE_CHECKING:
    from tercet.service.settings.settings import Settings

TOPIC = "encoder"
TEXT = "Tea is brewed with hot water."
SECONDS = 5.0  # for an answer of a worker


def findings(settings: Settings) -> Generator[Finding, None, str | None]:
    """How the encoder of these settings does. Returns its fingerprint, None where it does not work."""
    if settings.encoder_urls:
        return (yield from _workers(settings))
    return (yield from _local(settings))


def _local(settings: Settings) -> Generator[Finding, None, str | None]:
    from tercet.models.encoder import encode
    from tercet.models.errors import ModelError
    from tercet.service.encoding.service import local_encoder

    yield from _exports(settings)
    began = time.perf_counter()
    try:
        encoder = local_encoder(settings)
        loaded = time.perf_counter()
        encode(encoder, [TEXT])
        encoded = time.perf_counter()
    except ModelError as error:
        yield Finding(
            "problem",
            TOPIC,
            f"checkpoint {settings.checkpoint!r} cannot be used: {error}",
            "name another with --checkpoint or TERCET_CHECKPOINT; multi-m3 and minilm-m3 come with Tercet",
        )
        return None
    info = encoder.info
    yield Finding(
        "ok",
        TOPIC,
        f"{info.name} with engine {info.engine}, {info.precision}: loaded in {loaded - began:.1f} s, a short "
        f"text encoded in {(encoded - loaded) * 1000:.0f} ms; up to {info.max_length} tokens, dense "
        f"{info.dense_dimension}, colbert {info.colbert_dimension}",
    )
    yield Finding("ok", TOPIC, f"fingerprint {info.fingerprint}")
    for adapter in encoder.describe_adapters():
        if adapter.problem is not None:
            yield Finding(
                "warning",
                TOPIC,
                f"adapter {adapter.name!r} cannot be used: {adapter.problem}",
                f"train or copy it again, or remove it from {settings.adapters_folder}",
            )
    return info.fingerprint


def _exports(settings: Settings) -> Iterator[Finding]:
    """The graphs of checkpoints that came without."""
    from tercet.models.export_cache import entries

    cached = entries(settings.export_cache_folder)
    if cached:
        files = (path for entry in cached for path in entry.rglob("*") if path.is_file())
        size = megabytes(sum(path.stat().st_size for path in files))
        names = ", ".join(entry.name for entry in cached)
        yield Finding("ok", TOPIC, f"exports in {settings.export_cache_folder}, {size}: {names}")


def _workers(settings: Settings) -> Generator[Finding, None, str | None]:
    import httpx

    key = settings.worker_access.key
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    fingerprints: dict[str, str] = {}
    with httpx.Client(headers=headers, timeout=SECONDS, trust_env=False) as client:
        for url in settings.encoder_urls:
            try:
                client.get(f"{url}/ready").raise_for_status()
                served = client.get(f"{url}/info").raise_for_status().json()["encoder"]
            except (httpx.HTTPError, ValueError, KeyError) as error:
                yield Finding(
                    "problem",
                    TOPIC,
                    f"the worker {url} cannot be used: {reason_of(error)}",
                    "look whether it runs, at its log, and whether encoder_key is one of its keys",
                )
                continue
            fingerprints[url] = served["fingerprint"]
            yield Finding(
                "ok", TOPIC, f"the worker {url} serves {served['name']}, fingerprint {served['fingerprint']}"
            )
    if len(set(fingerprints.values())) > 1:
        yield Finding(
            "problem",
            TOPIC,
            "the workers serve different encoders",
            "start all of them with the same checkpoint and precision",
        )
    return next(iter(fingerprints.values()), None)
