"""Haystack's own suites."""

from __future__ import annotations

import pytest
from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.testing.document_store import (
    CountDocumentsByFilterTest,
    CountUniqueMetadataByFilterTest,
    DocumentStoreBaseExtendedTests,
    GetMetadataFieldMinMaxTest,
    GetMetadataFieldsInfoTest,
    GetMetadataFieldUniqueValuesTest,
)
from haystack.testing.document_store_async import (
    CountDocumentsAsyncTest,
    CountDocumentsByFilterAsyncTest,
    CountUniqueMetadataByFilterAsyncTest,
    DeleteAllAsyncTest,
    DeleteByFilterAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    GetMetadataFieldMinMaxAsyncTest,
    GetMetadataFieldsInfoAsyncTest,
    GetMetadataFieldUniqueValuesAsyncTest,
    UpdateByFilterAsyncTest,
    WriteDocumentsAsyncTest,
)
from tercet_haystack import TercetDocumentStore

# Each as a document store finds them: with none declared, or with those of the suites' documents.
FIELDS = {
    "undeclared": {},
    "declared": {
        "number": "integer",
        "name": "keyword",
        "date": "keyword",
        "chapter": "keyword",
        "category": "keyword",
        "status": "keyword",
        "year": "integer",
        "updated": "boolean",
        "extra_field": "keyword",
        "featured": "boolean",
    },
}


class WithAndWithoutFields:
    """Each test twice."""

    @pytest.fixture(params=FIELDS)
    def document_store(
        self, request: pytest.FixtureRequest, url: str, key: str | None, collection: str
    ) -> TercetDocumentStore:
        settings = {"fields": FIELDS[request.param]}
        return TercetDocumentStore(url=url, collection=collection, key=key, settings=settings)


class TestDocumentStore(WithAndWithoutFields, DocumentStoreBaseExtendedTests):
    def test_write_documents(self, document_store: TercetDocumentStore) -> None:  # type: ignore[override]
        """Without a policy, an id that is there is an error."""
        document = Document(id="1", content="one")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
        assert document_store.write_documents([document], DuplicatePolicy.OVERWRITE) == 1


class TestDocumentStoreAsync(
    WithAndWithoutFields,
    CountDocumentsAsyncTest,
    WriteDocumentsAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    DeleteAllAsyncTest,
    DeleteByFilterAsyncTest,
    UpdateByFilterAsyncTest,
    CountDocumentsByFilterAsyncTest,
):
    async def test_write_documents_async(self, document_store: TercetDocumentStore) -> None:  # type: ignore[override]
        """Without a policy, an id that is there is an error."""
        document = Document(id="1", content="one")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([document])
        assert await document_store.write_documents_async([document], DuplicatePolicy.OVERWRITE) == 1


class WithoutFields:
    """The documents of these suites give one field values of several types, as no declared one may have."""

    @pytest.fixture
    def document_store(self, url: str, key: str | None, collection: str) -> TercetDocumentStore:
        return TercetDocumentStore(url=url, collection=collection, key=key)


class TestMetadata(
    WithoutFields,
    CountDocumentsByFilterTest,
    CountUniqueMetadataByFilterTest,
    GetMetadataFieldsInfoTest,
    GetMetadataFieldMinMaxTest,
    GetMetadataFieldUniqueValuesTest,
):
    pass


class TestMetadataAsync(
    WithoutFields,
    CountUniqueMetadataByFilterAsyncTest,
    GetMetadataFieldsInfoAsyncTest,
    GetMetadataFieldMinMaxAsyncTest,
    GetMetadataFieldUniqueValuesAsyncTest,
):
    pass
