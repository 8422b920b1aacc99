"""What searches of a collection use where they give no weights or candidates: look, store, remove."""

from __future__ import annotations

from fastapi import Response

from tercet.index.candidates import DEFAULT_CANDIDATES, CandidateLimits
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.settings import CollectionSettings
from tercet.service.collections.readable import CollectionDescription
from tercet.service.load.reading import Reading
from tercet.service.routes.collections import Name, collection_record
from tercet.service.routes.common import (
    ADMIN,
    Services,
    TimeLimit,
    errors,
    json_response,
    router,
    weights_of,
)
from tercet.service.runtime import Runtime
from tercet.service.schemas.collections import (
    CollectionResponse,
    DefaultCandidates,
    DefaultsRequest,
    UsedDefaults,
)
from tercet.service.schemas.search import SearchWeightsRequest
from tercet.service.search.answers import sides_record
from tercet.service.search.checks import require_bm25, require_known_sides
from tercet.service.search.defaults import WantedCandidates, candidates_used, weights_used
from tercet.service.search.target import detect_languages

DEFAULTS = "/collections/{name}/defaults"

routes = router("collections")


@routes.get(DEFAULTS, response_model=UsedDefaults, responses=errors(404, 409, 422))
async def get_defaults(name: Name, services: Services, deadline: TimeLimit) -> Response:
    """The weights and candidates of searches that give none: what is stored, or else what is usual, which
    weighs lexical scores less where documents are in several languages.
    """
    target = await services.collections.open_with_defaults(name, Reading(deadline), effort=False)
    await detect_languages(target, services.pools.search)
    settings = target.snapshot.settings
    weights = weights_used(None, target).of(settings.encoder_sides)
    candidates = candidates_used(WantedCandidates(), 1, weights, target.defaults)
    return json_response(
        {
            "weights": sides_record(weights, bm25=settings.bm25),
            "candidates": sides_record(candidates, bm25=settings.bm25),
            "stored": target.defaults is not None,
        }
    )


@routes.put(
    DEFAULTS,
    response_model=CollectionResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def store_defaults(name: Name, body: DefaultsRequest, services: Services) -> Response:
    """Store what later searches use where they give no weights or candidates, as `tercet tune` does."""
    return await _with_defaults(services, name, body)


@routes.delete(
    DEFAULTS,
    response_model=CollectionResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def remove_defaults(name: Name, services: Services) -> Response:
    """Remove what is stored for searches: they use the usual weights and candidates again."""
    return await _with_defaults(services, name, None)


async def _with_defaults(services: Runtime, name: str, body: DefaultsRequest | None) -> Response:
    def store() -> CollectionDescription:
        writes = services.writes("storing defaults")
        own = services.collections.aliases.collection_of(name)
        settings = services.collections.describe(own).settings
        writes.store_defaults(own, None if body is None else _defaults(body, settings))
        return services.collections.describe(own)

    return json_response(collection_record(await services.pools.operations.run(store)))


def _defaults(body: DefaultsRequest, settings: CollectionSettings) -> SearchDefaults:
    """Raises InvalidRequestError for a side that the collection does not have."""
    weights, given = weights_of(body.weights), body.candidates or DefaultCandidates()
    requested = body.weights.requested if isinstance(body.weights, SearchWeightsRequest) else ()
    require_known_sides(requested, settings.sides, settings.encoder, weights)
    counts = given.dense, given.sparse, given.bm25
    require_bm25(weights, WantedCandidates(*counts), settings)
    limits = CandidateLimits(*(count or DEFAULT_CANDIDATES for count in counts))
    return SearchDefaults(weights.of(settings.sides), limits)
