"""Requests and answers, as the server describes them. Made by `clients/generate_types.py`."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, Union

# An adapter or router. `fingerprint`: of the encoder with it, or null where it cannot be used; see
# `problem`. `router`: a router's settings, such as the adapters that it chooses among.
AdapterResponse = TypedDict(
    "AdapterResponse",
    {
        "name": "str",
        "kind": "str | None",
        "fingerprint": "str | None",
        "description": "str",
        "language": "str | None",
        "domain": "str | None",
        "problem": "str | None",
        "router": "dict[str, Any] | None",
    },
)

# Aliases, in order of name.
AliasList = TypedDict(
    "AliasList",
    {
        "aliases": "list[AliasResponse]",
        "next": "NotRequired[str | None]",
    },
)

# What an alias means: one collection, or several.
AliasRequest = TypedDict(
    "AliasRequest",
    {
        "collection": "NotRequired[str | None]",
        "collections": "NotRequired[list[str] | None]",
    },
)

# An alias, and what it means.
AliasResponse = TypedDict(
    "AliasResponse",
    {
        "alias": "str",
        "collection": "str | None",
        "collections": "list[str]",
    },
)

# All of the filters match.
AndFilter = TypedDict(
    "AndFilter",
    {
        "and": "list[Filter]",
    },
)

# The backups of a collection, the newest first.
BackupList = TypedDict(
    "BackupList",
    {
        "backups": "list[BackupResponse]",
        "next": "NotRequired[str | None]",
    },
)

# A backup of a collection.
BackupResponse = TypedDict(
    "BackupResponse",
    {
        "id": "str",
        "collection": "str",
        "position": "int | str",
        "documents": "int",
        "size_bytes": "int",
        "created_at": "str",
    },
)

# How many documents each retriever proposes, at most `max_candidates`; 0 turns one off.  By default
# those that are stored with the collection, or else 200; always enough for `offset` and `top_k`. BM25
# proposes only where it has a weight.
CandidatesRequest = TypedDict(
    "CandidatesRequest",
    {
        "dense": "NotRequired[int | None]",
        "sparse": "NotRequired[int | None]",
        "bm25": "NotRequired[int | None]",
    },
)

# How many documents each retriever proposes, at most.
CandidatesResponse = TypedDict(
    "CandidatesResponse",
    {
        "dense": "int",
        "sparse": "int",
        "bm25": "NotRequired[int | None]",
    },
)

# Collections, in order of name.
CollectionList = TypedDict(
    "CollectionList",
    {
        "collections": "list[CollectionResponse]",
        "next": "NotRequired[str | None]",
    },
)

# Settings of a new collection; but for more fields, they never change afterwards.
CollectionRequest = TypedDict(
    "CollectionRequest",
    {
        "dense_kind": "NotRequired[Literal['auto', 'flat', 'hnsw', 'ivfpq', 'ivfrabitq'] | None]",
        "dense_memory_bytes": "NotRequired[int | None]",
        "token_codec": "NotRequired[Literal['float16', 'int8', 'sign', 'none'] | None]",
        "token_pooling": "NotRequired[int | None]",
        "lexical": "NotRequired[Literal['plain', 'idf'] | None]",
        "bm25": "NotRequired[bool | None]",
        "bm25_language": "NotRequired[Literal['none', 'arabic', 'armenian', 'basque', 'catalan', 'czech', 'danish', 'dutch', 'english', 'esperanto', 'estonian', 'finnish', 'french', 'german', 'greek', 'hindi', 'hungarian', 'indonesian', 'irish', 'italian', 'lithuanian', 'nepali', 'norwegian', 'persian', 'polish', 'portuguese', 'romanian', 'russian', 'serbian', 'sesotho', 'spanish', 'swedish', 'tamil', 'turkish', 'yiddish'] | None]",
        "model": "NotRequired[str | None]",
        "adapter": "NotRequired[str | None]",
        "window": "NotRequired[WindowRequest | Literal[False] | None]",
        "fields": "NotRequired[dict[str, Literal['keyword', 'integer', 'number', 'boolean', 'datetime']] | None]",
        "partitioned": "NotRequired[bool | None]",
        "title": "NotRequired[str | None]",
    },
)

# A collection's settings and state; `snapshot` is null before its first publication.
CollectionResponse = TypedDict(
    "CollectionResponse",
    {
        "name": "str",
        "collections": "NotRequired[list[str] | None]",
        "title": "str | None",
        "snapshot": "str | None",
        "documents": "int",
        "model": "str",
        "adapter": "str | None",
        "fingerprint": "str",
        "dense_dimension": "int",
        "colbert_dimension": "int",
        "vocabulary_size": "int",
        "dense_kind": "Literal['auto', 'flat', 'hnsw', 'ivfpq', 'ivfrabitq']",
        "dense_memory_bytes": "int | None",
        "token_codec": "Literal['float16', 'int8', 'residual4', 'residual2', 'residual1', 'sign', 'none']",
        "token_pooling": "int",
        "lexical": "Literal['plain', 'idf']",
        "bm25": "bool",
        "bm25_language": "Literal['none', 'arabic', 'armenian', 'basque', 'catalan', 'czech', 'danish', 'dutch', 'english', 'esperanto', 'estonian', 'finnish', 'french', 'german', 'greek', 'hindi', 'hungarian', 'indonesian', 'irish', 'italian', 'lithuanian', 'nepali', 'norwegian', 'persian', 'polish', 'portuguese', 'romanian', 'russian', 'serbian', 'sesotho', 'spanish', 'swedish', 'tamil', 'turkish', 'yiddish'] | None",
        "window": "WindowResponse | None",
        "fields": "dict[str, Literal['keyword', 'integer', 'number', 'boolean', 'datetime']]",
        "partitioned": "bool",
        "defaults": "DefaultsResponse | None",
    },
)

# Which documents to count.
CountDocumentsRequest = TypedDict(
    "CountDocumentsRequest",
    {
        "filter": "NotRequired[Filter | None]",
        "partition": "NotRequired[str | None]",
        "min_position": "NotRequired[int | str | None]",
    },
)

# How many there are.
CountDocumentsResponse = TypedDict(
    "CountDocumentsResponse",
    {
        "count": "int",
    },
)

# Points for documents with a value near an origin, fewer the further away it is; none without.
DecayBoost = TypedDict(
    "DecayBoost",
    {
        "field": "str",
        "decay": "Literal['exp', 'linear', 'gauss']",
        "origin": "str | float",
        "scale": "str | float",
        "add": "float",
        "offset": "NotRequired[str | float | None]",
        "at_scale": "NotRequired[float | None]",
    },
)

# How many documents each retriever proposes. BM25 proposes only where it has a weight.
DefaultCandidates = TypedDict(
    "DefaultCandidates",
    {
        "dense": "NotRequired[int | None]",
        "sparse": "NotRequired[int | None]",
        "bm25": "NotRequired[int | None]",
    },
)

# What later searches of a collection use where they give no weights or candidates.
DefaultsRequest = TypedDict(
    "DefaultsRequest",
    {
        "weights": "SearchWeightsRequest | Literal['sum', 'miracl', 'mldr', 'flag']",
        "candidates": "NotRequired[DefaultCandidates | None]",
    },
)

# What searches use where they give no weights or candidates; `tercet tune` or `PUT
# /collections/{name}/defaults` stores it.
DefaultsResponse = TypedDict(
    "DefaultsResponse",
    {
        "weights": "WeightsResponse",
        "candidates": "CandidatesResponse",
    },
)

# Which documents to delete: by ids or filter, a partition or both.
DeleteDocumentsRequest = TypedDict(
    "DeleteDocumentsRequest",
    {
        "ids": "NotRequired[list[str | int] | None]",
        "filter": "NotRequired[Filter | None]",
        "partition": "NotRequired[str | None]",
        "idempotency_key": "NotRequired[str | None]",
    },
)

# What was there and is no longer.
DeleteDocumentsResponse = TypedDict(
    "DeleteDocumentsResponse",
    {
        "deleted": "int",
        "position": "int | str",
    },
)

# Some documents, in order of their ids' bytes, or of a field.
DocumentPage = TypedDict(
    "DocumentPage",
    {
        "documents": "list[DocumentResponse]",
        "next": "str | None",
    },
)

# Ready representations of a document, made with the collection's encoder: nothing is encoded then.
DocumentRepresentations = TypedDict(
    "DocumentRepresentations",
    {
        "dense": "NotRequired[list[float] | PackedVectors | None]",
        "sparse": "NotRequired[SparseQuery | None]",
        "colbert": "NotRequired[list[list[float]] | PackedVectors | None]",
        "tokens": "NotRequired[int | None]",
        "truncated": "NotRequired[bool | None]",
        "fingerprint": "str",
        "windows": "NotRequired[list[WindowRepresentations] | None]",
        "position": "NotRequired[int | str | None]",
    },
)

# A document.
DocumentRequest = TypedDict(
    "DocumentRequest",
    {
        "id": "str | int",
        "text": "str",
        "title": "NotRequired[str | None]",
        "metadata": "NotRequired[dict[str, Any] | None]",
        "partition": "NotRequired[str | None]",
        "representations": "NotRequired[DocumentRepresentations | None]",
    },
)

# A stored document.
DocumentResponse = TypedDict(
    "DocumentResponse",
    {
        "id": "str",
        "collection": "NotRequired[str | None]",
        "title": "str | None",
        "text": "str",
        "metadata": "dict[str, Any]",
        "partition": "NotRequired[str | None]",
        "representations": "NotRequired[StoredDocumentRepresentations | None]",
    },
)

# Texts to encode.
EmbedRequest = TypedDict(
    "EmbedRequest",
    {
        "inputs": "str | list[str]",
        "input_type": "NotRequired[Literal['query', 'document'] | None]",
        "outputs": "NotRequired[list[Literal['dense', 'sparse', 'colbert']] | None]",
        "truncate": "NotRequired[bool | None]",
        "max_length": "NotRequired[int | None]",
        "dimensions": "NotRequired[int | None]",
        "model": "NotRequired[str | None]",
        "adapter": "NotRequired[str | None]",
        "encoding": "NotRequired[Literal['float', 'base64'] | None]",
        "dtype": "NotRequired[Literal['float32', 'float16', 'int8', 'binary', 'ubinary'] | None]",
        "colbert_pool": "NotRequired[int | None]",
    },
)

# One embedding for each text, in order.
EmbedResponse = TypedDict(
    "EmbedResponse",
    {
        "model": "str",
        "adapter": "str | None",
        "fingerprint": "str",
        "usage": "Usage",
        "embeddings": "list[Embedding]",
    },
)

# What was asked for of one text.
Embedding = TypedDict(
    "Embedding",
    {
        "dense": "NotRequired[list[float] | PackedValues | None]",
        "dense_scale": "NotRequired[float | None]",
        "sparse": "NotRequired[SparseEmbedding | None]",
        "colbert": "NotRequired[list[list[float]] | PackedValues | None]",
        "colbert_scales": "NotRequired[list[float] | PackedValues | None]",
        "tokens": "int",
        "truncated": "bool",
        "adapter": "NotRequired[str | None]",
        "adapters": "NotRequired[list[WeighedAdapter] | None]",
    },
)

# The encoder: its identity, its sizes, of which that of a side it lacks is 0, its limit in tokens.
EncoderResponse = TypedDict(
    "EncoderResponse",
    {
        "name": "str",
        "fingerprint": "str",
        "engine": "str",
        "precision": "str",
        "dense_dimension": "int",
        "colbert_dimension": "int",
        "vocabulary_size": "int",
        "max_length": "int",
        "pooling": "str",
        "lexical": "Literal['plain', 'idf']",
        "adapter": "None",
    },
)

# The field, or one of a list's strings, has the value.
EqFilter = TypedDict(
    "EqFilter",
    {
        "eq": "dict[str, str | bool | float]",
    },
)

# What went wrong.
ErrorDetail = TypedDict(
    "ErrorDetail",
    {
        "type": "str",
        "message": "str",
        "param": "str | None",
        "code": "str",
    },
)

# The shape of every error.
ErrorResponse = TypedDict(
    "ErrorResponse",
    {
        "error": "ErrorDetail",
    },
)

# Stored documents as examples: of what the hits shall be like, and of what not. None of them is a
# hit.  For BM25 the query is the text of those in `like`.
ExamplesQuery = TypedDict(
    "ExamplesQuery",
    {
        "like": "list[str]",
        "unlike": "NotRequired[list[str] | None]",
    },
)

# The field has a value.
ExistsFilter = TypedDict(
    "ExistsFilter",
    {
        "exists": "str",
    },
)

# Where a hit's scores come from.
ExplanationResponse = TypedDict(
    "ExplanationResponse",
    {
        "terms": "list[TermMatch]",
        "alignment": "list[TokenAlignment]",
        "bm25": "NotRequired[list[WordMatch] | None]",
        "boosts": "NotRequired[list[float] | None]",
    },
)

# The commonest values of a field, of equally common ones the smaller first.
FacetResponse = TypedDict(
    "FacetResponse",
    {
        "values": "list[FacetValueResponse]",
        "distinct": "int",
        "missing": "int",
        "unlisted": "NotRequired[int | None]",
    },
)

# A value, and how many documents have it.
FacetValueResponse = TypedDict(
    "FacetValueResponse",
    {
        "value": "str | bool",
        "count": "int",
    },
)

# Metadata fields to declare over what a collection holds.
FieldsRequest = TypedDict(
    "FieldsRequest",
    {
        "fields": "dict[str, Literal['keyword', 'integer', 'number', 'boolean', 'datetime']]",
    },
)

# A kind of file.
FileKindResponse = TypedDict(
    "FileKindResponse",
    {
        "name": "str",
        "endings": "list[str]",
        "text": "bool",
        "lines": "bool",
        "packed": "bool",
        "headings": "bool",
    },
)

# Files that imports and jobs read.
FilesResponse = TypedDict(
    "FilesResponse",
    {
        "kinds": "list[FileKindResponse]",
        "packings": "list[str]",
    },
)

# Points for every document that a filter matches.
FilterBoost = TypedDict(
    "FilterBoost",
    {
        "filter": "Filter",
        "add": "float",
    },
)

# Which documents to give.
GetDocumentsRequest = TypedDict(
    "GetDocumentsRequest",
    {
        "ids": "list[str | int]",
        "partition": "NotRequired[str | None]",
        "min_position": "NotRequired[int | str | None]",
    },
)

# Stored documents in the order of their ids in the request; of several collections those of each.
GetDocumentsResponse = TypedDict(
    "GetDocumentsResponse",
    {
        "documents": "list[DocumentResponse]",
        "missing": "list[str]",
    },
)

# The field's value is more than the limit.
GtFilter = TypedDict(
    "GtFilter",
    {
        "gt": "dict[str, str | bool | float]",
    },
)

# The field's value is the limit or more; strings compare by their UTF-8 bytes.
GteFilter = TypedDict(
    "GteFilter",
    {
        "gte": "dict[str, str | bool | float]",
    },
)

# A part of a text that has what the query says.
HighlightResponse = TypedDict(
    "HighlightResponse",
    {
        "start": "int",
        "end": "int",
    },
)

# A document found.
HitResponse = TypedDict(
    "HitResponse",
    {
        "id": "str",
        "collection": "NotRequired[str | None]",
        "score": "float",
        "scores": "NotRequired[HitScoresResponse]",
        "confidence": "NotRequired[float | None]",
        "window": "NotRequired[HitWindowResponse | None]",
        "title": "NotRequired[str | None]",
        "text": "NotRequired[str]",
        "metadata": "NotRequired[dict[str, Any]]",
        "partition": "NotRequired[str | None]",
        "explanation": "NotRequired[ExplanationResponse | None]",
        "highlights": "NotRequired[list[HighlightResponse] | None]",
        "title_highlights": "NotRequired[list[HighlightResponse] | None]",
    },
)

# The scores before weighting; null where the collection does not store a side, or the query lacks it.
HitScoresResponse = TypedDict(
    "HitScoresResponse",
    {
        "dense": "float | None",
        "sparse": "float | None",
        "colbert": "float | None",
        "bm25": "NotRequired[float | None]",
        "boost": "NotRequired[float | None]",
        "reranker": "NotRequired[float | None]",
    },
)

# The window of a document that matches best: the one that would score highest by itself.
HitWindowResponse = TypedDict(
    "HitWindowResponse",
    {
        "index": "int",
        "start": "int",
        "end": "int",
    },
)

# A column of the file, or an entry of its objects `metadata`.
ImportColumn = TypedDict(
    "ImportColumn",
    {
        "name": "str",
        "samples": "list[Any]",
        "type": "Literal['keyword', 'integer', 'number', 'boolean', 'datetime'] | None",
    },
)

# How the file is read: as the request says, or as it was found.
ImportOptions = TypedDict(
    "ImportOptions",
    {
        "text_field": "str | None",
        "title_field": "str | None",
        "id_field": "str | None",
        "generate_ids": "bool",
        "encoding": "str | None",
        "delimiter": "str | None",
        "split": "str | None",
    },
)

# What an import would read; nothing is written.
ImportPreview = TypedDict(
    "ImportPreview",
    {
        "columns": "list[ImportColumn]",
        "options": "ImportOptions",
        "documents": "list[DocumentResponse]",
        "skipped": "int",
        "reasons": "list[str]",
        "problem": "str | None",
    },
)

# A line of the answer: what is written so far and on the disk. The last one says `done`, or `error`.
ImportProgress = TypedDict(
    "ImportProgress",
    {
        "documents": "NotRequired[int | None]",
        "skipped": "NotRequired[int | None]",
        "position": "NotRequired[int | str | None]",
        "fraction": "NotRequired[float | None]",
        "done": "NotRequired[bool | None]",
        "reasons": "NotRequired[list[str] | None]",
        "error": "NotRequired[ErrorDetail | None]",
    },
)

# The field, or one of a list's strings, has one of the values.
InFilter = TypedDict(
    "InFilter",
    {
        "in": "dict[str, list[str | bool | float]]",
    },
)

# What this server is.
InfoResponse = TypedDict(
    "InfoResponse",
    {
        "name": "Literal['tercet']",
        "version": "str",
        "encoder": "EncoderResponse",
        "adapters": "list[AdapterResponse]",
        "encoding_settings": "dict[str, Any]",
        "limits": "LimitsResponse",
        "files": "FilesResponse",
    },
)

# Jobs, the newest first.
JobList = TypedDict(
    "JobList",
    {
        "jobs": "list[JobResponse]",
        "next": "NotRequired[str | None]",
    },
)

# A batch build of a collection, which takes effect in one step when it is done.
JobRequest = TypedDict(
    "JobRequest",
    {
        "source": "str | list[str]",
        "mode": "NotRequired[Literal['replace', 'upsert'] | None]",
        "model": "NotRequired[str | None]",
        "adapter": "NotRequired[str | None]",
        "reading": "NotRequired[ReadingRequest | None]",
        "engine": "NotRequired[Literal['local', 'ray'] | None]",
        "on_error": "NotRequired[Literal['stop', 'skip'] | None]",
    },
)

# A job's progress and outcome. Times are ISO 8601 in UTC.
JobResponse = TypedDict(
    "JobResponse",
    {
        "id": "str",
        "collection": "str",
        "source": "str | list[str]",
        "adapter": "str | None",
        "mode": "Literal['replace', 'upsert']",
        "engine": "Literal['local', 'ray']",
        "state": "Literal['queued', 'running', 'succeeded', 'failed', 'cancelled']",
        "documents_done": "int",
        "documents_total": "int | None",
        "phase": "Literal['reading', 'sampling', 'learning', 'encoding', 'indexing'] | None",
        "fraction": "float",
        "tokens": "int",
        "on_error": "Literal['stop', 'skip']",
        "reading": "dict[str, Any]",
        "skipped": "int",
        "skips": "list[str]",
        "truncated": "int",
        "snapshot": "str | None",
        "error": "str | None",
        "created_at": "str",
        "started_at": "str | None",
        "finished_at": "str | None",
    },
)

# Writes on the disk that no segment has yet; `bytes` are those of its files.
LedgerResponse = TypedDict(
    "LedgerResponse",
    {
        "entries": "int",
        "bytes": "int",
    },
)

# What one request may ask for.
LimitsResponse = TypedDict(
    "LimitsResponse",
    {
        "body_bytes": "int",
        "texts": "int",
        "characters": "int",
        "documents": "int",
        "top_k": "int",
        "queries": "int",
        "query_hits": "int",
        "candidates": "int",
        "request_tokens": "int",
        "write_documents": "int",
        "write_tokens": "int",
        "page_documents": "int",
    },
)

# The field's value is less than the limit.
LtFilter = TypedDict(
    "LtFilter",
    {
        "lt": "dict[str, str | bool | float]",
    },
)

# The field's value is the limit or less.
LteFilter = TypedDict(
    "LteFilter",
    {
        "lte": "dict[str, str | bool | float]",
    },
)

# A flush and merges have begun.
MergeResponse = TypedDict(
    "MergeResponse",
    {
        "merging": "Literal[True]",
    },
)

# The filter does not match; so it is where the document has no value.
NotFilter = TypedDict(
    "NotFilter",
    {
        "not": "Filter",
    },
)

# At least one of the filters matches.
OrFilter = TypedDict(
    "OrFilter",
    {
        "or": "list[Filter]",
    },
)

# An array as base64 of its little-endian float32 values, row by row.
PackedArray = TypedDict(
    "PackedArray",
    {
        "data": "str",
        "shape": "list[int]",
        "dtype": "NotRequired[Literal['float32']]",
    },
)

# An array as base64 of its little-endian values, row by row.
PackedValues = TypedDict(
    "PackedValues",
    {
        "data": "str",
        "shape": "list[int]",
        "dtype": "Literal['float32', 'float16', 'int8', 'uint8']",
    },
)

# A vector, or one vector for each token, as `/embed` gives it for `"encoding": "base64"`.
PackedVectors = TypedDict(
    "PackedVectors",
    {
        "data": "str",
        "shape": "list[int]",
        "dtype": "NotRequired[Literal['float32'] | None]",
    },
)

# What an answer lacks.
PartialResponse = TypedDict(
    "PartialResponse",
    {
        "shards": "list[str]",
    },
)

# What to change of a document.
PatchDocumentRequest = TypedDict(
    "PatchDocumentRequest",
    {
        "metadata": "dict[str, Any]",
        "merge": "NotRequired[bool | None]",
        "idempotency_key": "NotRequired[str | None]",
        "if_position": "NotRequired[int | str | None]",
    },
)

# The change is on the disk.
PatchDocumentResponse = TypedDict(
    "PatchDocumentResponse",
    {
        "position": "int | str",
    },
)

# Documents to add, or to replace where their ids are there.
PutDocumentsRequest = TypedDict(
    "PutDocumentsRequest",
    {
        "documents": "list[DocumentRequest]",
        "create": "NotRequired[bool | None]",
        "idempotency_key": "NotRequired[str | None]",
        "if_position": "NotRequired[int | str | None]",
    },
)

# Documents that are on the disk, and that the next search sees.
PutDocumentsResponse = TypedDict(
    "PutDocumentsResponse",
    {
        "upserted": "int",
        "position": "int | str",
        "usage": "Usage",
        "truncated": "NotRequired[int | None]",
    },
)

# The hits of one of several queries, best first; ties in order of id.
QueryResult = TypedDict(
    "QueryResult",
    {
        "query": "QueryUsage",
        "took_ms": "TookMs",
        "exhausted": "bool",
        "confident": "NotRequired[bool | None]",
        "hits": "list[HitResponse]",
    },
)

# The query's lexical weights, and what the collection multiplies each by; one place for each term.
QueryTermsResponse = TypedDict(
    "QueryTermsResponse",
    {
        "token_ids": "list[int]",
        "tokens": "list[str]",
        "weights": "list[float]",
        "idf": "list[float]",
    },
)

# How the query was encoded; 0 tokens for ready representations.
QueryUsage = TypedDict(
    "QueryUsage",
    {
        "tokens": "int",
        "truncated": "bool",
        "terms": "NotRequired[QueryTermsResponse | None]",
    },
)

# How a source is read, where its columns have other names than the usual ones, and cut into passages.
# A name may be a path into nested objects and lists of them, its parts joined by dots.
ReadingRequest = TypedDict(
    "ReadingRequest",
    {
        "text_field": "NotRequired[str | None]",
        "title_field": "NotRequired[str | None]",
        "id_field": "NotRequired[str | None]",
        "partition_field": "NotRequired[str | None]",
        "metadata_fields": "NotRequired[list[str] | None]",
        "no_metadata_fields": "NotRequired[list[str] | None]",
        "generate_ids": "NotRequired[bool | None]",
        "infer_fields": "NotRequired[bool | None]",
        "columns": "NotRequired[list[str] | None]",
        "encoding": "NotRequired[str | None]",
        "delimiter": "NotRequired[str | None]",
        "format": "NotRequired[Literal['jsonl', 'json', 'csv', 'tsv', 'parquet', 'arrow', 'markdown', 'html', 'pdf', 'text'] | None]",
        "records": "NotRequired[str | None]",
        "split": "NotRequired[Literal['markdown', 'paragraphs', 'tokens'] | None]",
        "split_size": "NotRequired[int | None]",
    },
)

# What is ready; an encoder worker, which has no documents, says `status` alone.
ReadyResponse = TypedDict(
    "ReadyResponse",
    {
        "status": "Literal['ready']",
        "reads": "NotRequired[Literal['ready']]",
        "writes": "NotRequired[Literal['ready', 'storage_full', 'unavailable', 'elsewhere']]",
    },
)

# Ready representations of a query, made with the collection's encoder: an item of `embeddings` as
# `/embed` gives it for `"input_type": "query"`.  A side may be missing only where its weight and its
# number of candidates are 0.
RepresentationsQuery = TypedDict(
    "RepresentationsQuery",
    {
        "dense": "NotRequired[list[float] | PackedVectors | None]",
        "sparse": "NotRequired[SparseQuery | None]",
        "colbert": "NotRequired[list[list[float]] | PackedVectors | None]",
        "text": "NotRequired[str | None]",
        "tokens": "NotRequired[int | None]",
        "truncated": "NotRequired[bool | None]",
    },
)

# Documents to order by their scores with a query.
RerankRequest = TypedDict(
    "RerankRequest",
    {
        "query": "str",
        "inputs": "list[str]",
        "top_k": "NotRequired[int | None]",
        "collection": "NotRequired[str | None]",
        "weights": "NotRequired[RerankWeightsRequest | Literal['sum', 'miracl', 'mldr', 'flag'] | None]",
        "model": "NotRequired[str | None]",
        "adapter": "NotRequired[str | None]",
    },
)

# Results, best first; ties in the request's order.
RerankResponse = TypedDict(
    "RerankResponse",
    {
        "query": "QueryUsage",
        "results": "list[RerankResult]",
        "usage": "Usage",
    },
)

# One document's scores; `index` is its place in the request.
RerankResult = TypedDict(
    "RerankResult",
    {
        "index": "int",
        "score": "float",
        "scores": "ScoresResponse",
        "truncated": "bool",
    },
)

# Weights of the three scores in the sum; one that is not given is 1, and 0 leaves a side out.
RerankWeightsRequest = TypedDict(
    "RerankWeightsRequest",
    {
        "dense": "NotRequired[float | None]",
        "sparse": "NotRequired[float | None]",
        "colbert": "NotRequired[float | None]",
    },
)

# Where a backup is restored to.
RestoreRequest = TypedDict(
    "RestoreRequest",
    {
        "name": "NotRequired[str | None]",
    },
)

# The three scores before weighting; null where the collection does not store that side.
ScoresResponse = TypedDict(
    "ScoresResponse",
    {
        "dense": "float | None",
        "sparse": "float | None",
        "colbert": "float | None",
    },
)

# The last hit that is known already.
SearchAfter = TypedDict(
    "SearchAfter",
    {
        "score": "float",
        "id": "str",
        "collection": "NotRequired[str | None]",
    },
)

# A result for each of `queries`, in order. `weights` and `candidates` are those that were used.
SearchManyResponse = TypedDict(
    "SearchManyResponse",
    {
        "collection": "str",
        "snapshot": "str",
        "weights": "WeightsResponse",
        "candidates": "CandidatesResponse",
        "took_ms": "TookMs",
        "facets": "NotRequired[dict[str, FacetResponse] | None]",
        "partial": "NotRequired[PartialResponse | None]",
        "results": "list[QueryResult]",
    },
)

# Effort of the approximate dense search; by default what `tercet collection tune` stored.
SearchOptions = TypedDict(
    "SearchOptions",
    {
        "ef_search": "NotRequired[int | None]",
        "nprobe": "NotRequired[int | None]",
    },
)

# A query to a collection.
SearchRequest = TypedDict(
    "SearchRequest",
    {
        "collection": "str",
        "query": "NotRequired[str | RepresentationsQuery | StoredDocumentQuery | ExamplesQuery | None]",
        "queries": "NotRequired[list[str | RepresentationsQuery | StoredDocumentQuery | ExamplesQuery] | None]",
        "top_k": "NotRequired[int | None]",
        "weights": "NotRequired[SearchWeightsRequest | Literal['sum', 'miracl', 'mldr', 'flag'] | None]",
        "candidates": "NotRequired[CandidatesRequest | None]",
        "filter": "NotRequired[Filter | None]",
        "partition": "NotRequired[str | None]",
        "adapter": "NotRequired[str | None]",
        "explain": "NotRequired[bool | None]",
        "highlight": "NotRequired[bool | None]",
        "reranker": "NotRequired[str | None]",
        "search_options": "NotRequired[SearchOptions | None]",
        "offset": "NotRequired[int | None]",
        "search_after": "NotRequired[SearchAfter | None]",
        "snapshot": "NotRequired[str | None]",
        "min_position": "NotRequired[int | str | None]",
        "allow_partial": "NotRequired[bool | None]",
        "min_score": "NotRequired[float | None]",
        "min_confidence": "NotRequired[float | None]",
        "include": "NotRequired[list[Literal['scores', 'confidence', 'window', 'title', 'text', 'metadata', 'terms']] | None]",
        "group_by": "NotRequired[str | None]",
        "fusion": "NotRequired[Literal['sum', 'rrf'] | None]",
        "boosts": "NotRequired[list[Boost] | None]",
        "facets": "NotRequired[dict[str, int] | list[str] | None]",
    },
)

# Hits, best first; ties in order of id, then of collection. `weights` and `candidates` are those that
# were used. Those of a re-ranker come in its order, and ties in that of `score`.
SearchResponse = TypedDict(
    "SearchResponse",
    {
        "collection": "str",
        "snapshot": "str",
        "query": "QueryUsage",
        "weights": "WeightsResponse",
        "candidates": "CandidatesResponse",
        "took_ms": "TookMs",
        "exhausted": "bool",
        "confident": "NotRequired[bool | None]",
        "facets": "NotRequired[dict[str, FacetResponse] | None]",
        "partial": "NotRequired[PartialResponse | None]",
        "hits": "list[HitResponse]",
    },
)

# Weights of the scores in the sum; 0 leaves a side out. One of the three that is not given is 1, or 0
# where the encoder lacks that side, and `bm25`, of a collection that was created with it, is 0.
SearchWeightsRequest = TypedDict(
    "SearchWeightsRequest",
    {
        "dense": "NotRequired[float | None]",
        "sparse": "NotRequired[float | None]",
        "colbert": "NotRequired[float | None]",
        "bm25": "NotRequired[float | None]",
    },
)

# Lexical weights of a text; ids ascend, and the three lists go together.
SparseEmbedding = TypedDict(
    "SparseEmbedding",
    {
        "token_ids": "list[int]",
        "weights": "list[float]",
        "tokens": "list[str]",
    },
)

# Lexical weights of a query, as `/embed` gives them.
SparseQuery = TypedDict(
    "SparseQuery",
    {
        "token_ids": "list[int]",
        "weights": "list[float]",
        "tokens": "NotRequired[list[str] | None]",
    },
)

# What a collection holds, and how far its upkeep is.
StatisticsResponse = TypedDict(
    "StatisticsResponse",
    {
        "name": "str",
        "documents": "int",
        "deleted": "int",
        "segments": "int",
        "bytes": "dict[str, int]",
        "unpublished": "UnpublishedResponse",
        "ledger": "LedgerResponse",
        "position": "int | str",
        "published_position": "int | str",
        "flushing": "bool",
        "merging": "bool",
    },
)

# The process answers.
StatusResponse = TypedDict(
    "StatusResponse",
    {
        "status": "Literal['ok']",
    },
)

# A stored document as the query: its representations, and its text for BM25. It is no hit itself.
StoredDocumentQuery = TypedDict(
    "StoredDocumentQuery",
    {
        "id": "str",
        "collection": "NotRequired[str | None]",
        "window": "NotRequired[int | None]",
    },
)

# What is stored of a document: its three representations, or where it is divided into windows those
# of each. `PUT` takes it as it is, but pools token vectors again: into a collection with token
# pooling put the text.
StoredDocumentRepresentations = TypedDict(
    "StoredDocumentRepresentations",
    {
        "fingerprint": "str",
        "position": "int | str",
        "dense": "NotRequired[list[float] | PackedArray | None]",
        "sparse": "NotRequired[SparseEmbedding | None]",
        "colbert": "NotRequired[list[list[float]] | PackedArray | None]",
        "windows": "NotRequired[list[StoredWindow] | None]",
    },
)

# What is stored of a window.
StoredWindow = TypedDict(
    "StoredWindow",
    {
        "dense": "list[float] | PackedArray",
        "sparse": "SparseEmbedding",
        "colbert": "NotRequired[list[list[float]] | PackedArray | None]",
        "start": "int",
        "end": "int",
    },
)

# A token that query and document share. `product` is that of the two weights and `idf`; the products
# add up to the lexical score.
TermMatch = TypedDict(
    "TermMatch",
    {
        "token_id": "int",
        "token": "str",
        "query_weight": "float",
        "idf": "float",
        "document_weight": "float",
        "product": "float",
        "window": "NotRequired[int | None]",
    },
)

# A query token's best document token; the mean of the similarities is the colbert score.  Positions
# count token vectors. A token is null where its text is not known.
TokenAlignment = TypedDict(
    "TokenAlignment",
    {
        "query_position": "int",
        "query_token": "str | None",
        "document_position": "int",
        "document_token": "str | None",
        "similarity": "float",
        "prompt": "NotRequired[bool | None]",
        "window": "NotRequired[int | None]",
    },
)

# Milliseconds of each stage.
TookMs = TypedDict(
    "TookMs",
    {
        "encode": "float",
        "retrieve": "float",
        "score": "float",
        "total": "float",
        "rerank": "NotRequired[float | None]",
    },
)

# Documents in memory that no segment has yet.
UnpublishedResponse = TypedDict(
    "UnpublishedResponse",
    {
        "documents": "int",
        "bytes": "int",
    },
)

# Which documents to change, by ids or filter, a partition or both, and how.
UpdateDocumentsRequest = TypedDict(
    "UpdateDocumentsRequest",
    {
        "ids": "NotRequired[list[str | int] | None]",
        "filter": "NotRequired[Filter | None]",
        "partition": "NotRequired[str | None]",
        "metadata": "dict[str, Any]",
        "merge": "NotRequired[bool | None]",
        "idempotency_key": "NotRequired[str | None]",
    },
)

# The changes are on the disk.
UpdateDocumentsResponse = TypedDict(
    "UpdateDocumentsResponse",
    {
        "updated": "int",
        "position": "int | str",
    },
)

# What a request cost.
Usage = TypedDict(
    "Usage",
    {
        "tokens": "int",
    },
)

# What searches that give no weights or candidates use.
UsedDefaults = TypedDict(
    "UsedDefaults",
    {
        "weights": "WeightsResponse",
        "candidates": "CandidatesResponse",
        "stored": "bool",
    },
)

# An adapter, null for the base, and its weight for a text; a text's weights sum to 1.
WeighedAdapter = TypedDict(
    "WeighedAdapter",
    {
        "adapter": "str | None",
        "weight": "float",
    },
)

# Weights of the scores in the sum.
WeightsResponse = TypedDict(
    "WeightsResponse",
    {
        "dense": "float",
        "sparse": "float",
        "colbert": "float",
        "bm25": "NotRequired[float | None]",
    },
)

# Those of a document's window.
WindowRepresentations = TypedDict(
    "WindowRepresentations",
    {
        "dense": "NotRequired[list[float] | PackedVectors | None]",
        "sparse": "NotRequired[SparseQuery | None]",
        "colbert": "NotRequired[list[list[float]] | PackedVectors | None]",
        "tokens": "NotRequired[int | None]",
        "truncated": "NotRequired[bool | None]",
        "start": "int",
        "end": "int",
    },
)

# Windows in which documents beyond them are encoded.
WindowRequest = TypedDict(
    "WindowRequest",
    {
        "tokens": "int",
        "overlap": "NotRequired[int | None]",
    },
)

# Windows in which documents beyond them are encoded.
WindowResponse = TypedDict(
    "WindowResponse",
    {
        "tokens": "int",
        "overlap": "int",
    },
)

# A term of BM25, a stem or a pair of characters, that query and document share. `product` is the
# scaled product of `query_count`, `idf` and `document_weight`; the products add up to the BM25 score.
WordMatch = TypedDict(
    "WordMatch",
    {
        "term": "str",
        "query_count": "int",
        "idf": "float",
        "frequency": "int",
        "document_weight": "float",
        "product": "float",
    },
)

Boost = Union['FilterBoost', 'DecayBoost']

Filter = Union['AndFilter', 'OrFilter', 'NotFilter', 'EqFilter', 'InFilter', 'GteFilter', 'GtFilter', 'LteFilter', 'LtFilter', 'ExistsFilter']
