"""What `model` of a compatible route may name."""

from __future__ import annotations

from tercet.service.runtime import Runtime


async def models_of(services: Runtime) -> list[str]:
    """The server's own encoder, its adapters and routers that can be used, and the other encoders."""
    adapters = await services.encoding.adapters()
    usable = (one.name for one in adapters if one.fingerprint is not None)
    own, *others = await services.encoders.names()
    return [own, *usable, *others]
