"""What bodies of writes say: documents, what they bring along, which documents are meant, and their key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter, ValidationError

from tercet.index.candidates import Document
from tercet.index.documents.filters import Filter, parse_filter
from tercet.index.documents.metadata import FieldType, require_metadata
from tercet.index.documents.partitions import PARTITION, is_same_partition, within_partition
from tercet.index.errors import InvalidQueryError
from tercet.index.live.records import WriteKey
from tercet.service.documents.binary import BinaryBody
from tercet.service.documents.keys import given_key, write_key
from tercet.service.documents.ready import ReadyText, ReadyTexts
from tercet.service.documents.writer import about_document
from tercet.service.exceptions import InvalidRequestError, RequestTooLargeError
from tercet.service.keys.access import Access
from tercet.service.routes.common import check_characters, numbers_of
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import too_many
from tercet.service.schemas.documents import (
    DeleteDocumentsRequest,
    DocumentContent,
    DocumentRequest,
    PatchDocumentRequest,
    PutDocumentsRequest,
    TextRepresentations,
    UpdateDocumentsRequest,
    WindowRepresentations,
)
from tercet.service.settings.settings import RequestLimits

KeyedRequest = PutDocumentsRequest | PatchDocumentRequest | UpdateDocumentsRequest | DeleteDocumentsRequest
_CONTENTS = TypeAdapter(Annotated[list[DocumentContent], Field(min_length=1, fail_fast=True)])


@contextmanager
def about_the_filter() -> Iterator[None]:
    """Only a filter can be invalid in what is asked for here."""
    try:
        yield
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "filter", "invalid_filter") from error


def partition_fields(contents: Sequence[DocumentContent], access: Access) -> dict[str, FieldType]:
    """The field of partitions where a document has one, so that searches know it in any collection; none
    where a key may not declare fields.
    """
    has_partition = any(content.partition is not None for content in contents)
    return {PARTITION: "keyword"} if has_partition and access.right == "admin" else {}


def documents_of(contents: Sequence[DocumentContent]) -> list[Document]:
    """Documents as the index takes them. Raises InvalidRequestError for one that names two partitions."""
    documents = []
    for position, content in enumerate(contents):
        metadata = content.metadata or {}
        if content.partition is not None:
            if not is_same_partition(metadata.get(PARTITION, content.partition), content.partition):
                raise InvalidRequestError(
                    "partition and metadata.partition differ; give one of them",
                    f"documents.{position}.partition",
                )
            metadata = {**metadata, PARTITION: content.partition}
        documents.append(Document(content.id, content.text, content.title, metadata))
    return documents


def check_texts(documents: Sequence[DocumentContent], limits: RequestLimits) -> None:
    """Raises InvalidRequestError naming the first text or title that is too long."""
    for position, document in enumerate(documents):
        check_characters([document.text], limits.characters, f"documents.{position}.text")
        check_characters([document.title or ""], limits.characters, f"documents.{position}.title")


def contents_of(body: BinaryBody, limits: RequestLimits) -> list[DocumentContent]:
    """The documents of a binary body. Raises RequestTooLargeError, or what a body of JSON would."""
    complaint = too_many(body.line_count, "write_documents", "items", limits)
    if complaint is not None:
        raise RequestTooLargeError(f"documents {complaint.message()}", "documents")
    values = body.values()
    try:
        return _CONTENTS.validate_python(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        details = [{**detail, "loc": ("body", "documents", *detail["loc"])} for detail in errors]
        raise RequestValidationError(details, body={"documents": values}) from error


def which_of(
    body: DeleteDocumentsRequest | UpdateDocumentsRequest,
) -> tuple[Sequence[str] | Filter, str | None]:
    """The ids of a body and their partition, if one is given; or what its filter and partition allow. A
    filter is read before the body's key, whose digest can hold only what a filter may.
    """
    if body.ids is not None and body.filter is None:
        return body.ids, body.partition
    filter = filter_of(body.filter, body.partition)
    if body.ids is not None or filter is None:
        raise InvalidRequestError("give ids or filter: one of them, or a partition, with or without", "ids")
    return filter, None


def filter_of(tree: object, partition: str | None) -> Filter | None:
    """What the parsed JSON of a filter and a partition allow; None where neither is given. Raises
    InvalidRequestError.
    """
    with about_the_filter():
        return within_partition(None if tree is None else parse_filter(tree), partition)


@dataclass(frozen=True, slots=True)
class KeyHeaders:
    """What headers say of a write's key. digest: what tells a repeat under it from another write, instead of
    the body. A router sends that of its own request: a shard gets a part of it, whose representations need
    not be the same to the bit when it is repeated.
    """

    key: str | None
    digest: str | None

    async def of(
        self, body: KeyedRequest, services: Runtime, route: str, names: tuple[str, ...]
    ) -> WriteKey | None:
        """The key of a write with a body that may be large. route, names: as of `write_key`."""
        given = given_key(self.key, body.idempotency_key)
        if given is None:
            return None
        return await services.pools.bodies.run(_digested, given, route, names, body, self.digest)


def _digested(
    given: str, route: str, names: tuple[str, ...], body: KeyedRequest, digest: str | None
) -> WriteKey | None:
    """Raises InvalidDocumentError for metadata that no digest can be taken of, as no document may have it."""
    if isinstance(body, PutDocumentsRequest):
        for position, document in enumerate(body.documents):
            with about_document(position):
                require_metadata(f"document {document.id!r:.80}", document.metadata or {})
    elif isinstance(body, PatchDocumentRequest | UpdateDocumentsRequest):
        require_metadata(f"document {names[-1]!r:.80}", body.metadata)
    # Its own key is no part of what is compared, nor what servers of before did not know and says nothing.
    left_out = {"idempotency_key", *(() if getattr(body, "merge", False) else ("merge",))}
    content = {name: value for name, value in body if name not in left_out}
    return write_key(given, route, names, content, digest)


def ready_texts(documents: Sequence[DocumentRequest]) -> ReadyTexts:
    """The representations that some of the documents bring along."""
    positions: list[int] = []
    fingerprints: list[str] = []
    texts: list[list[ReadyText]] = []
    for position, document in enumerate(documents):
        given, param = document.representations, f"documents.{position}.representations"
        if given is None:
            continue
        positions.append(position)
        fingerprints.append(given.fingerprint)
        if given.windows is None:
            texts.append([_text(given, param)])
            continue
        for side in ("dense", "sparse", "colbert"):
            if getattr(given, side) is not None:
                raise InvalidRequestError(
                    f"{param}.{side}: the windows have their own; leave it out", f"{param}.{side}"
                )
        windows = enumerate(given.windows)
        texts.append([_text(window, f"{param}.windows.{number}") for number, window in windows])
    return ReadyTexts(np.array(positions, np.int64), fingerprints, texts)


def _text(given: TextRepresentations, param: str) -> ReadyText:
    return ReadyText(
        param,
        numbers_of(given.dense, 1, f"{param}.dense"),
        None if given.sparse is None else (given.sparse.token_ids, given.sparse.weights),
        numbers_of(given.colbert, 2, f"{param}.colbert"),
        (given.start, given.end) if isinstance(given, WindowRepresentations) else None,
    )
