"""Documents with what a collection stores of them, which is computed once however often it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from tercet.index.candidates import Document
from tercet.index.documents.fields import Column, columns_of
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.partitions import partition_of
from tercet.index.documents.store import encode_document
from tercet.index.errors import DuplicateDocumentError, InvalidDocumentError
from tercet.index.files.packed_bytes import PackedBytes


@dataclass(frozen=True, slots=True)
class CheckedDocuments(Sequence[Document]):
    """Documents that keep to the limits of the index and to the types of declared fields.

    ids, contents: what is stored of each document. columns: of the declared fields. distinct: whether it is
    known that no id occurs twice; partitioned: that each has a partition.
    """

    documents: Sequence[Document]
    fields: Mapping[str, FieldType]
    ids: PackedBytes
    contents: PackedBytes
    columns: Mapping[str, Column]
    distinct: bool
    partitioned: bool

    @staticmethod
    def of(
        documents: Sequence[Document],
        fields: Mapping[str, FieldType],
        *,
        distinct: bool = False,
        partitioned: bool = False,
    ) -> CheckedDocuments:
        """Checks documents against the declared fields. Those that were checked so before are given back.

        distinct: whether ids that occur twice are looked for, too; partitioned: and documents without a
        partition.
        Raises InvalidDocumentError or DuplicateDocumentError, with the index of the first document at fault.
        """
        if isinstance(documents, CheckedDocuments):
            is_checked = documents.distinct >= distinct and documents.partitioned >= partitioned
            if documents.fields == fields and is_checked:
                return documents
            documents = documents.documents
        if distinct:
            _require_distinct(documents)
        ids, contents = [], []
        for index, document in enumerate(documents):
            try:
                id, content = encode_document(document)
                if partitioned:
                    partition_of(document)
            except InvalidDocumentError as error:
                error.index = index
                raise
            ids.append(id)
            contents.append(content)
        return CheckedDocuments(
            documents,
            fields,
            PackedBytes.of(ids),
            PackedBytes.of(contents),
            _columns(documents, fields),
            distinct,
            partitioned,
        )

    def __len__(self) -> int:
        return len(self.documents)

    @overload
    def __getitem__(self, index: int) -> Document: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Document]: ...

    def __getitem__(self, index: int | slice) -> Document | Sequence[Document]:
        return self.documents[index]


def _require_distinct(documents: Sequence[Document]) -> None:
    seen: set[str] = set()
    for index, document in enumerate(documents):
        if document.id in seen:
            raise DuplicateDocumentError(
                f"document id {document.id!r:.80} occurs twice in one write; give each document once", index
            )
        seen.add(document.id)


def _columns(documents: Sequence[Document], fields: Mapping[str, FieldType]) -> Mapping[str, Column]:
    try:
        return columns_of(
            fields, [document.id for document in documents], [document.metadata for document in documents]
        )
    except InvalidDocumentError:
        for index, document in enumerate(documents):  # the first at fault, of whichever field
            try:
                columns_of(fields, [document.id], [document.metadata])
            except InvalidDocumentError as error:
                error.index = index
                raise
        raise
