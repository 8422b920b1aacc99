"""Fields of requests and of answers that several services have."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from tercet.service.compat.request import TextOrObject, texts_of
from tercet.service.compat.shapes import REQUIRED, Answer, IfKnown, Slot, Take, answer
from tercet.service.exceptions import InvalidRequestError
from tercet.service.schemas.base import WHOLE, counted
from tercet.service.schemas.search_answers import ScoresResponse

MODEL = Take(
    "model",
    Annotated[str, Field(max_length=500)],
    "An encoder, adapter or router that `/v1/models` lists. Any other name means the server's own encoder, "
    "since clients must name some model.",
)
NAME = Slot("model", str)
TOKENS = Slot("tokens", int)
INDEX = Slot("index", int)
NEW_ID = Slot("id", str)


def cutting(about: str, default: bool | None = None) -> Take:
    """The field that says whether longer texts are cut, which are refused otherwise."""
    return Take("truncate", bool, about, default, lambda value, _: value is not False)


def as_list(given: str | list[Any], _name: str) -> list[Any]:
    """A text as a list of one, token ids as they are."""
    return [given] if isinstance(given, str) else given


def texts(kind: Any, about: str | None = None, read: Callable[[Any, str], Any] = as_list) -> Take:
    """The field with the texts. kind: its type; read: makes a list of them."""
    return Take("texts", kind, about, REQUIRED, read)


def query_if(pattern: str, kind: Any, about: str | None = None, default: str | None = None) -> Take:
    """The field that says what kind of text the texts are. pattern: of its values for queries."""
    return Take("query", kind, about, default, lambda value, _: fnmatchcase(value or "", pattern))


def refused(about: str, remedy: str) -> Take:
    """A field that may not be true."""

    def read(value: bool | None, name: str) -> None:
        if value:
            raise InvalidRequestError(f"{name} is true; {remedy}", name, "unsupported")

    return Take(None, bool, about, False, read)


DIMENSIONS = Take(
    "dimensions",
    Annotated[int, Field(ge=1), WHOLE],
    "Keep this many values of each vector, normalized again.",
)
NORMALIZED = Take(None, bool, "Without effect: the encoder's vectors have length 1.", True)
SHORT = Annotated[str, Field(max_length=100)]
SEVERAL = Annotated[list[str], Field(min_length=1, fail_fast=True), counted("texts", "texts"), Tag("texts")]
PACKED = Literal["float", "base64"]
VECTOR = Slot("vectors", list[float])
VECTORS = Slot("vectors", list[list[float]])
TEA = "Tea is brewed with hot water."


def vector_list(service: str, usage: str) -> Answer:
    """The answer of OpenAI, and of those that have it. service, usage: names in the description."""
    about, vector = "The dense vector of one text.", Slot("vectors", list[float] | str)
    return answer(
        f"{service}EmbeddingsResponse",
        "Dense vectors in the order of the texts.",
        object="list",
        data=[answer(f"{service}Embedding", about, object="embedding", index=INDEX, embedding=vector)],
        model=NAME,
        usage=answer(usage, "What a request cost.", prompt_tokens=TOKENS, total_tokens=TOKENS),
    )


RELEVANCE = (
    "`relevance_score` grows with the sum and lies between 0 and 1; `score` is the sum, `scores` its parts."
)
QUERY = Take("query", str, default=REQUIRED)
DOCUMENTS = Take(
    "texts",
    Annotated[list[TextOrObject], Field(min_length=1, fail_fast=True), counted("documents", "texts")],
    "Texts, or objects with a `text`.",
    REQUIRED,
    texts_of,
)
TOP_N = Take("top_n", Annotated[int, Field(ge=1), WHOLE], "By default all.")
RANKED = ["Tea is brewed with hot water.", "Coffee is ground."]
EXAMPLE: dict[str, Any] = {"query": "how is tea made", "documents": RANKED}
RESULT = answer(
    "RerankedResult",
    "A text of the request by its place.",
    index=INDEX,
    relevance_score=Slot(
        "relevance", Annotated[float, Field(description="Between 0 and 1; grows with `score`.")]
    ),
    score=Slot("sum", Annotated[float, Field(description="The sum of the three scores.")]),
    scores=Slot("scores", ScoresResponse),
    document=IfKnown(
        Slot("record", answer("TextRecord", "A text as it was given.", text=Slot("text", str)).model)
    ),
)
