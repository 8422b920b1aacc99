"""`tercet search`: one query over the collections of a data root or of a server."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.collection.listing import list_collections
from tercet.cli.filters import Filters, checked_boosts, checked_filter
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import print_json
from tercet.cli.search_answers import print_answer
from tercet.cli.stores.opening import opened_store
from tercet.cli.stores.remote import Url

FACET_VALUES = 10

if TYPE_CHECKING:
    from tercet.index.candidates import Weights


@with_flag_groups
def search(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of the collection; without one the collections are listed.",
            show_default=False,
            autocompletion=options.collection_names,
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="What to search for.", show_default=False)
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Number of hits.")] = 10,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET|D,S,C[,B]",
            help="Weights of dense, sparse, colbert and bm25: sum, miracl, mldr, flag, or three or four "
            "numbers. [default: those stored with the collection, or sum]",
            show_default=False,
        ),
    ] = None,
    filters: Filters = None,
    offset: Annotated[int, typer.Option(min=0, help="Hits to leave out before the first.")] = 0,
    min_score: Annotated[
        float | None, typer.Option(help="Only hits of this score or more.", show_default=False)
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Only hits that answer with this probability or more.", show_default=False
        ),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Only the best hit of each value of a keyword field.", show_default=False
        ),
    ] = None,
    boost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JSON",
            help='Points that are added to scores, such as {"filter": {"eq": {"lang": "en"}}, "add": 0.1} or '
            '{"field": "published", "decay": "exp", "origin": "2026-01-01", "scale": "30d", "add": 0.2}; may '
            "be given several times.",
            show_default=False,
        ),
    ] = None,
    fusion: Annotated[
        str, typer.Option(metavar="sum|rrf", help="The weighted sum of the scores, or of reciprocal ranks.")
    ] = "sum",
    highlight: Annotated[
        bool, typer.Option("--highlight", help="Mark what a hit's text and title have of the query.")
    ] = False,
    reranker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Put the hits in the order of this re-ranker, by its name.",
            show_default=False,
        ),
    ] = None,
    facet: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD[:N]",
            help="Count the values of a keyword or boolean field over all documents that the filter allows, "
            "and show the N commonest, by default 10; may be given several times.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Search for what is like this document, in the place of QUERY; may be given several times.",
            show_default=False,
        ),
    ] = None,
    unlike: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="With --like: for what is unlike this document; may be given several times.",
            show_default=False,
        ),
    ] = None,
    *,
    encoding: options.EncoderFlags,
    rerankers: options.Rerankers = None,
    url: Url = None,
    as_json: options.AsJson = False,
) -> None:
    """Search a collection; show the parts of each score.

    Without --url what a server has written since its last flush is left out, which is said then.
    """
    settings = encoding.settings(rerankers=rerankers)
    if name is None:
        with opened_store(url, settings, reads=True) as store:
            list_collections(store, as_json=as_json)
        return
    wanted = _wanted(query, like or [], unlike or [])
    parameters = {
        "top_k": top_k,
        "weights": None if weights is None else asdict(parse_weights(weights)),
        "filter": checked_filter(filters),
        "offset": offset,
        "min_score": min_score,
        "min_confidence": min_confidence,
        "group_by": group_by,
        "facets": _parse_facets(facet),
        "boosts": checked_boosts(boost or []),
        "fusion": _checked_fusion(fusion),
        "highlight": highlight,
        "reranker": reranker,
    }
    given = {key: value for key, value in parameters.items() if value not in (None, [])}
    with opened_store(url, settings, reads=True) as store:
        answer = store.search(name, wanted, **given)
    if as_json:
        print_json(answer)
    else:
        print_answer(answer, first=offset + 1)


def _wanted(query: str | None, like: list[str], unlike: list[str]) -> str | dict[str, Any]:
    """What to search for. Raises typer.BadParameter where the command does not say it, or twice."""
    if query is not None and (like or unlike):
        raise typer.BadParameter("it is in the place of QUERY; leave one out", param_hint="--like")
    if unlike and not like:
        raise typer.BadParameter("it goes with --like ID; give one", param_hint="--unlike")
    if like:
        return {"like": like, "unlike": unlike} if len(like) > 1 or unlike else {"id": like[0]}
    if query is None:
        raise typer.BadParameter(
            "say what to search for after the collection's name, or give --like ID", param_hint="QUERY"
        )
    return query


def parse_weights(words: str) -> Weights:
    """Weights from a preset's name or from three or four numbers. Raises typer.BadParameter."""
    from tercet.index.candidates import Weights
    from tercet.index.errors import InvalidQueryError
    from tercet.index.fusion import weights_preset

    parts = words.split(",")
    try:
        if len(parts) in (3, 4):
            weights = [float(part) for part in parts]
            if not all(0 <= weight < math.inf for weight in weights):
                raise ValueError(words)
            return Weights(*weights)
        return weights_preset(words)
    except (ValueError, InvalidQueryError) as error:
        raise typer.BadParameter(
            f"{words!r} is neither a preset nor three or four numbers from 0 such as 1,0.3,1",
            param_hint="--weights",
        ) from error


def _checked_fusion(name: str) -> str:
    if name not in ("sum", "rrf"):
        raise typer.BadParameter(f"{name!r} is neither sum nor rrf", param_hint="--fusion")
    return name


def _parse_facets(given: list[str] | None) -> dict[str, int] | None:
    if not given:
        return None
    facets = {}
    for facet in given:
        field, _, number = facet.partition(":")
        if number and not number.isdecimal():
            raise typer.BadParameter(f"{facet!r} is no FIELD:N such as lang:5", param_hint="--facet")
        facets[field] = int(number or FACET_VALUES)
    return facets
