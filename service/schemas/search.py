"""What a request of `/search` may hold; its answers are in `search_answers.py`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from tercet.index.fusion import Fusion
from tercet.index.reading.examples import MOST_EXAMPLES
from tercet.index.search.query import MAX_FACET_VALUES
from tercet.models.soundness import LARGEST_COMPONENT, LARGEST_WEIGHT
from tercet.service.schemas.base import (
    NAME_PATTERN,
    WHOLE,
    AdapterName,
    Integer,
    MinPosition,
    Partition,
    Request,
    Text,
    at_most,
    counted,
    discriminated,
)
from tercet.service.schemas.boosts import Boosts
from tercet.service.schemas.filters import FilterTree
from tercet.service.search.query import FACET_VALUES, AnswerPart

PresetName = Literal["sum", "miracl", "mldr", "flag"]

Component = Annotated[float, Field(ge=-LARGEST_COMPONENT, le=LARGEST_COMPONENT, allow_inf_nan=False)]
# More than any encoder gives; without a limit, checking millions of numbers would hold up other requests.
MAX_ROWS = 65_536
MAX_OFFSET = 1_000_000
MAX_FACETS = 32
Vector = Annotated[list[Component], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
LexicalWeight = Annotated[float, Field(ge=0, le=LARGEST_WEIGHT, allow_inf_nan=False)]
TokenId = Annotated[int, Field(ge=0, lt=2**31), WHOLE]
Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
RerankerName = Annotated[
    str, Field(pattern=NAME_PATTERN, description="A cross-encoder in the server's folder of re-rankers.")
]
CollectionName = Annotated[str, Field(pattern=NAME_PATTERN, description="A collection.")]


class WeightsRequest(Request):
    """Weights of the three scores in the sum; one that is not given is 1, or 0 where the encoder lacks that
    side, and 0 leaves a side out.
    """

    dense: Weight | None = 1.0
    sparse: Weight | None = 1.0
    colbert: Weight | None = 1.0

    @property
    def requested(self) -> frozenset[str]:
        """The sides that a weight above 0 was given to."""
        return frozenset(name for name in self.model_fields_set if getattr(self, name))


class SearchWeightsRequest(WeightsRequest):
    """Weights of the scores in the sum; 0 leaves a side out. One of the three that is not given is 1, or 0
    where the encoder lacks that side, and `bm25`, of a collection that was created with it, is 0.
    """

    bm25: Weight | None = 0.0


class CandidatesRequest(Request):
    """How many documents each retriever proposes, at most `max_candidates`; 0 turns one off.

    By default those that are stored with the collection, or else 200; always enough for `offset` and `top_k`.
    BM25 proposes only where it has a weight.
    """

    dense: Annotated[int, Field(ge=0), WHOLE] | None = None
    sparse: Annotated[int, Field(ge=0), WHOLE] | None = None
    bm25: Annotated[int, Field(ge=0), WHOLE] | None = None


class SparseQuery(Request):
    """Lexical weights of a query, as `/embed` gives them."""

    token_ids: Annotated[list[TokenId], Field(max_length=MAX_ROWS, fail_fast=True)]
    weights: Annotated[list[LexicalWeight], Field(max_length=MAX_ROWS, fail_fast=True)]
    tokens: Annotated[list[str], Field(max_length=MAX_ROWS, fail_fast=True)] | None = Field(
        None, description="Ignored; `/embed` gives it."
    )


class PackedVectors(Request):
    """A vector, or one vector for each token, as `/embed` gives it for `"encoding": "base64"`."""

    data: str = Field(description="Base64 of little-endian float32 values, row by row.")
    shape: Annotated[list[Annotated[int, Field(ge=1), WHOLE]], Field(min_length=1, max_length=2)] = Field(
        description="Rows and columns, or one length."
    )
    dtype: Literal["float32"] | None = "float32"


class RepresentationsQuery(Request):
    """Ready representations of a query, made with the collection's encoder: an item of `embeddings` as
    `/embed` gives it for `"input_type": "query"`.

    A side may be missing only where its weight and its number of candidates are 0.
    """

    dense: Vector | PackedVectors | None = None
    sparse: SparseQuery | None = None
    colbert: (
        Annotated[list[Vector], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
        | PackedVectors
        | None
    ) = None
    text: Text | None = Field(None, description="What was encoded, for BM25, which reads the text itself.")
    tokens: Integer | None = Field(None, description="Ignored; `/embed` gives it.")
    truncated: bool | None = Field(None, description="Ignored; `/embed` gives it.")


class StoredDocumentQuery(Request):
    """A stored document as the query: its representations, and its text for BM25. It is no hit itself."""

    id: str = Field(description="Of a document of the collection; another is 404.")
    collection: Annotated[str, Field(pattern=NAME_PATTERN)] | None = Field(
        None,
        description="The document's, where several are searched as one and more than one have the id, which "
        "is a conflict, 409, without it. Ignored for one collection.",
    )
    window: Annotated[int, Field(ge=0), WHOLE] | None = Field(
        None,
        description="Which of its windows is the query, from 0; by default the first, which is all of a "
        "document without windows.",
    )


DocumentIds = Annotated[list[str], Field(max_length=MOST_EXAMPLES, fail_fast=True)]


class ExamplesQuery(Request):
    """Stored documents as examples: of what the hits shall be like, and of what not. None of them is a hit.

    For BM25 the query is the text of those in `like`.
    """

    like: Annotated[DocumentIds, Field(min_length=1)] = Field(
        description="Ids of documents of the collection; ones that are not there are 404, and of several "
        "collections ones that more than one have are 409."
    )
    unlike: DocumentIds | None = Field(None, description="Ids of others, which count half as much.")


def _kind_of_query(value: object) -> str | None:
    """Which of them a value is meant to be; None for what is neither a string nor an object."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        if "like" in value or "unlike" in value:
            return "examples"
        return "document" if "id" in value else "representations"
    return None


Query = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[RepresentationsQuery, Tag("representations")]
    | Annotated[StoredDocumentQuery, Tag("document")]
    | Annotated[ExamplesQuery, Tag("examples")],
    Discriminator(_kind_of_query, "string_or_object", "use a string or an object"),
]


class SearchAfter(Request):
    """The last hit that is known already."""

    score: Annotated[float, Field(allow_inf_nan=False)] = Field(description="Its `score`, as it came.")
    id: str
    collection: Annotated[str, Field(pattern=NAME_PATTERN)] | None = Field(
        None, description="Its `collection`, where it has one."
    )


class SearchOptions(Request):
    """Effort of the approximate dense search; by default what `tercet collection tune` stored."""

    ef_search: Annotated[int, Field(ge=1, le=100_000), WHOLE] | None = Field(
        None, description="For kind `hnsw`; of several segments each takes its share."
    )
    nprobe: Annotated[int, Field(ge=1, le=100_000), WHOLE] | None = Field(
        None, description="For kinds `ivfpq` and `ivfrabitq`."
    )


class SearchRequest(Request):
    """A query to a collection."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"collection": "demo", "query": "how is tea made", "top_k": 3},
                {
                    "collection": "demo",
                    "query": {"like": ["en-sourdough"], "unlike": ["en-gluten"]},
                    "boosts": [{"filter": {"eq": {"topic": "cooking"}}, "add": 0.1}],
                    "highlight": True,
                },
            ]
        }
    )

    collection: CollectionName
    query: Query | None = Field(None, description="What to search for; or give `queries`.")
    queries: (
        Annotated[list[Query], Field(min_length=1, fail_fast=True), counted("queries", "queries")] | None
    ) = Field(
        None,
        description="Several queries, answered alike and through one snapshot; their number is limited by "
        "the setting `max_queries`, and that of all hits by `max_query_hits`.",
    )
    top_k: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        None, description="Hits; by default 10, and limited by the setting `max_top_k`."
    )
    weights: SearchWeightsRequest | PresetName | None = Field(
        None,
        description="Weights of the scores, or a preset's name; by default those that are stored with the "
        "collection, or else `sum`: 1, 1, 1, with less for `sparse` where the collection mixes languages.",
    )
    candidates: CandidatesRequest | None = None
    filter: FilterTree | None = Field(None, description="Documents to search among.")
    partition: Partition | None = Field(
        None,
        description="Only documents of this partition are searched, and counted by `facets`: a short form of "
        'the filter `{"eq": {"partition": …}}`. Over shards that of a partitioned collection is asked alone. '
        "The collection's idf and counts of words are those of all partitions.",
    )
    adapter: AdapterName | None = Field(
        None, description="By default the collection's; another one is a conflict, 409."
    )
    explain: bool | None = Field(False, description="Say for each hit where its scores come from.")
    highlight: bool | None = Field(
        False, description="Say for each hit which parts of its text and title have what the query says."
    )
    reranker: RerankerName | None = Field(
        None,
        description="The hits come in the order of this re-ranker, which reads the query's text together "
        "with that of each of them; by default in that of `score`.",
    )
    search_options: SearchOptions | None = None
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET), WHOLE] | None = Field(
        0,
        description="Hits to leave out before the first. Where `candidates` are not given there are enough "
        "of them, up to the setting `max_candidates`; behind the last there are no hits.",
    )
    search_after: SearchAfter | None = Field(
        None, description="Only hits behind this one, whether it is still there or not; for one query."
    )
    snapshot: str | None = Field(
        None,
        description="Of a former answer: only this version is searched, and one that is gone is 409, so that "
        "pages fit together.",
    )
    min_position: MinPosition | None = None
    allow_partial: bool | None = Field(
        False,
        description="Of a collection over shards: hits of those that answer, where others do not; "
        "`partial` of the answer names these. Without it that is an error.",
    )
    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, description="Only hits of this score or more."
    )
    min_confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        None,
        description="Only hits of this `confidence` or more. Where it is not known how sure hits are, it is "
        "422.",
    )
    include: Annotated[list[AnswerPart], Field(max_length=16, fail_fast=True)] | None = Field(
        None,
        description="The parts of a hit beside its id and score, by default all. Without title, text and "
        "metadata no stored text is read. `terms`, of the answer's `query`, has to be asked for.",
    )
    group_by: str | None = Field(
        None,
        description="A declared keyword field: only the best hit of each of its values. A document of "
        "several values stands for each; one without any is a group by itself.",
    )
    fusion: Fusion | None = Field(
        "sum",
        description="How the scores of the sides become one: `sum` is their weighted sum, `rrf` reciprocal "
        "rank fusion of the candidates, with weights and the constant 60.",
    )
    boosts: Boosts | None = Field(
        None,
        description="Points that are added to the score of every candidate for what its fields say.",
    )
    facets: (
        Annotated[
            Annotated[
                dict[str, Annotated[int, Field(ge=1, le=MAX_FACET_VALUES), WHOLE]],
                Field(max_length=MAX_FACETS),
                Tag("counts"),
            ]
            | Annotated[list[str], Field(max_length=MAX_FACETS, fail_fast=True), Tag("fields")],
            *discriminated(
                lambda value: {dict: "counts", list: "fields"}.get(type(value), "neither"),
                'an object such as {"lang": 10}, or a list of fields',
            ),
            at_most(MAX_FACETS, "facets are asked for", "ask for fewer at a time"),
        ]
        | None
    ) = Field(
        None,
        description="Of each of these keyword or boolean fields so many of the commonest values, of those in "
        f"a list {FACET_VALUES}, with exact counts over all documents that `filter` allows.",
    )
