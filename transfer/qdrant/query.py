"""The three-way query in Qdrant's language, as a script.

Two searches propose candidates, as ours do. Each of three further prefetches scores all of them by one side,
and the formula adds up the scores. A document that shares no term has no lexical score, which is then 0.
Late interaction is the sum over query tokens there and their mean here, so its weight is divided by their
number.
"""

from __future__ import annotations

import json

from tercet.transfer.qdrant.connection import QdrantPlace
from tercet.transfer.queries import CANDIDATES, HITS, CollectionQuery, numbers, one_line


def query_script(place: QdrantPlace, collection: str, query: CollectionQuery, *, windows: bool) -> str:
    """Python that prints the best documents; windows: whether documents have several dense vectors."""
    sides = [("dense", query.sides.dense)]
    vectors = [f"dense = {'[' if windows else ''}{numbers(query.dense)}{']' if windows else ''}"]
    if len(query.token_ids):
        sides.append(("sparse", query.sides.sparse))
        vectors.append(
            f"sparse = models.SparseVector(indices={numbers(query.token_ids)}, "
            f"values={numbers(query.weights)})  # times the collection's idf where it has one"
        )
    if query.colbert is not None and len(query.colbert):
        sides.append(("colbert", query.sides.colbert / len(query.colbert)))
        vectors.append(f"colbert = {numbers(query.colbert)}")
    proposing = [side for side, _ in sides if side != "colbert"]
    lines = [
        f"# {one_line(query.text)}",
        *(["import os", ""] if "os.environ" in place.code else []),
        "from qdrant_client import QdrantClient, models",
        "",
        f"client = {place.code}",
        *vectors,
        "candidates = [",
        *(f"    models.Prefetch(query={side}, using={side!r}, limit={CANDIDATES})," for side in proposing),
        "]",
        "",
        "",
        "def scored(query, side):",
        f"    limit = {CANDIDATES * len(proposing)}",
        "    return models.Prefetch(prefetch=candidates, query=query, using=side, limit=limit)",
        "",
        "",
        "answer = client.query_points(",
        f"    {collection!r},",
        f"    prefetch=[{', '.join(f'scored({side}, {side!r})' for side, _ in sides)}],",
        "    query=models.FormulaQuery(",
        "        formula=models.SumExpression(",
        "            sum=[",
        *(
            f'                models.MultExpression(mult=[{weight!r}, "$score[{number}]"]),  # {side}'
            for number, (side, weight) in enumerate(sides)
        ),
        "            ]",
        "        ),",
        f"        defaults={json.dumps({f'$score[{number}]': 0.0 for number in range(len(sides))})},",
        "    ),",
        f"    limit={HITS},",
        ")",
        "for point in answer.points:",
        '    print(round(point.score, 6), point.payload["id"], point.payload["title"])',
        "client.close()",
        "",
    ]
    return "\n".join(lines)
