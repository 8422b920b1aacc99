// Requests and answers, as the server describes them. Made by clients/generate_types.py.

/** An adapter or router. `fingerprint`: of the encoder with it, or null where it cannot be used; see
`problem`. `router`: a router's settings, such as the adapters that it chooses among. */
export interface AdapterResponse {
  name: string;
  kind: string | null;
  fingerprint: string | null;
  description: string;
  language: string | null;
  domain: string | null;
  problem: string | null;
  router: Record<string, unknown> | null;
}

/** Aliases, in order of name. */
export interface AliasList {
  aliases: Array<AliasResponse>;
  next?: string | null;
}

/** What an alias means: one collection, or several. */
export interface AliasRequest {
  collection?: string | null;
  collections?: Array<string> | null;
}

/** An alias, and what it means. */
export interface AliasResponse {
  alias: string;
  collection: string | null;
  collections: Array<string>;
}

/** All of the filters match. */
export interface AndFilter {
  and: Array<Filter>;
}

/** The backups of a collection, the newest first. */
export interface BackupList {
  backups: Array<BackupResponse>;
  next?: string | null;
}

/** A backup of a collection. */
export interface BackupResponse {
  id: string;
  collection: string;
  position: number | string;
  documents: number;
  size_bytes: number;
  created_at: string;
}

/** Points that are added to the score of a document for what its fields say. */
export type Boost = FilterBoost | DecayBoost;

/** How many documents each retriever proposes, at most `max_candidates`; 0 turns one off.

By default those that are stored with the collection, or else 200; always enough for `offset` and `top_k`.
BM25 proposes only where it has a weight. */
export interface CandidatesRequest {
  dense?: number | null;
  sparse?: number | null;
  bm25?: number | null;
}

/** How many documents each retriever proposes, at most. */
export interface CandidatesResponse {
  dense: number;
  sparse: number;
  bm25?: number | null;
}

/** Collections, in order of name. */
export interface CollectionList {
  collections: Array<CollectionResponse>;
  next?: string | null;
}

/** Settings of a new collection; but for more fields, they never change afterwards. */
export interface CollectionRequest {
  dense_kind?: "auto" | "flat" | "hnsw" | "ivfpq" | "ivfrabitq" | null;
  dense_memory_bytes?: number | null;
  token_codec?: "float16" | "int8" | "sign" | "none" | null;
  token_pooling?: number | null;
  lexical?: "plain" | "idf" | null;
  bm25?: boolean | null;
  bm25_language?: "none" | "arabic" | "armenian" | "basque" | "catalan" | "czech" | "danish" | "dutch" | "english" | "esperanto" | "estonian" | "finnish" | "french" | "german" | "greek" | "hindi" | "hungarian" | "indonesian" | "irish" | "italian" | "lithuanian" | "nepali" | "norwegian" | "persian" | "polish" | "portuguese" | "romanian" | "russian" | "serbian" | "sesotho" | "spanish" | "swedish" | "tamil" | "turkish" | "yiddish" | null;
  model?: string | null;
  adapter?: string | null;
  window?: WindowRequest | false | null;
  fields?: Record<string, "keyword" | "integer" | "number" | "boolean" | "datetime"> | null;
  partitioned?: boolean | null;
  title?: string | null;
}

/** A collection's settings and state; `snapshot` is null before its first publication. */
export interface CollectionResponse {
  name: string;
  collections?: Array<string> | null;
  title: string | null;
  snapshot: string | null;
  documents: number;
  model: string;
  adapter: string | null;
  fingerprint: string;
  dense_dimension: number;
  colbert_dimension: number;
  vocabulary_size: number;
  dense_kind: "auto" | "flat" | "hnsw" | "ivfpq" | "ivfrabitq";
  dense_memory_bytes: number | null;
  token_codec: "float16" | "int8" | "residual4" | "residual2" | "residual1" | "sign" | "none";
  token_pooling: number;
  lexical: "plain" | "idf";
  bm25: boolean;
  bm25_language: "none" | "arabic" | "armenian" | "basque" | "catalan" | "czech" | "danish" | "dutch" | "english" | "esperanto" | "estonian" | "finnish" | "french" | "german" | "greek" | "hindi" | "hungarian" | "indonesian" | "irish" | "italian" | "lithuanian" | "nepali" | "norwegian" | "persian" | "polish" | "portuguese" | "romanian" | "russian" | "serbian" | "sesotho" | "spanish" | "swedish" | "tamil" | "turkish" | "yiddish" | null;
  window: WindowResponse | null;
  fields: Record<string, "keyword" | "integer" | "number" | "boolean" | "datetime">;
  partitioned: boolean;
  defaults: DefaultsResponse | null;
}

/** Which documents to count. */
export interface CountDocumentsRequest {
  filter?: Filter | null;
  partition?: string | null;
  min_position?: number | string | null;
}

/** How many there are. */
export interface CountDocumentsResponse {
  count: number;
}

/** Points for documents with a value near an origin, fewer the further away it is; none without. */
export interface DecayBoost {
  field: string;
  decay: "exp" | "linear" | "gauss";
  origin: string | number;
  scale: string | number;
  add: number;
  offset?: string | number | null;
  at_scale?: number | null;
}

/** How many documents each retriever proposes. BM25 proposes only where it has a weight. */
export interface DefaultCandidates {
  dense?: number | null;
  sparse?: number | null;
  bm25?: number | null;
}

/** What later searches of a collection use where they give no weights or candidates. */
export interface DefaultsRequest {
  weights: SearchWeightsRequest | "sum" | "miracl" | "mldr" | "flag";
  candidates?: DefaultCandidates | null;
}

/** What searches use where they give no weights or candidates; `tercet tune` or `PUT
/collections/{name}/defaults` stores it. */
export interface DefaultsResponse {
  weights: WeightsResponse;
  candidates: CandidatesResponse;
}

/** Which documents to delete: by ids or filter, a partition or both. */
export interface DeleteDocumentsRequest {
  ids?: Array<string | number> | null;
  filter?: Filter | null;
  partition?: string | null;
  idempotency_key?: string | null;
}

/** What was there and is no longer. */
export interface DeleteDocumentsResponse {
  deleted: number;
  position: number | string;
}

/** Some documents, in order of their ids' bytes, or of a field. */
export interface DocumentPage {
  documents: Array<DocumentResponse>;
  next: string | null;
}

/** Ready representations of a document, made with the collection's encoder: nothing is encoded then. */
export interface DocumentRepresentations {
  dense?: Array<number> | PackedVectors | null;
  sparse?: SparseQuery | null;
  colbert?: Array<Array<number>> | PackedVectors | null;
  tokens?: number | null;
  truncated?: boolean | null;
  fingerprint: string;
  windows?: Array<WindowRepresentations> | null;
  position?: number | string | null;
}

/** A document. */
export interface DocumentRequest {
  id: string | number;
  text: string;
  title?: string | null;
  metadata?: Record<string, unknown> | null;
  partition?: string | null;
  representations?: DocumentRepresentations | null;
}

/** A stored document. */
export interface DocumentResponse {
  id: string;
  collection?: string | null;
  title: string | null;
  text: string;
  metadata: Record<string, unknown>;
  partition?: string | null;
  representations?: StoredDocumentRepresentations | null;
}

/** Texts to encode. */
export interface EmbedRequest {
  inputs: string | Array<string>;
  input_type?: "query" | "document" | null;
  outputs?: Array<"dense" | "sparse" | "colbert"> | null;
  truncate?: boolean | null;
  max_length?: number | null;
  dimensions?: number | null;
  model?: string | null;
  adapter?: string | null;
  encoding?: "float" | "base64" | null;
  dtype?: "float32" | "float16" | "int8" | "binary" | "ubinary" | null;
  colbert_pool?: number | null;
}

/** One embedding for each text, in order. */
export interface EmbedResponse {
  model: string;
  adapter: string | null;
  fingerprint: string;
  usage: Usage;
  embeddings: Array<Embedding>;
}

/** What was asked for of one text. */
export interface Embedding {
  dense?: Array<number> | PackedValues | null;
  dense_scale?: number | null;
  sparse?: SparseEmbedding | null;
  colbert?: Array<Array<number>> | PackedValues | null;
  colbert_scales?: Array<number> | PackedValues | null;
  tokens: number;
  truncated: boolean;
  adapter?: string | null;
  adapters?: Array<WeighedAdapter> | null;
}

/** The encoder: its identity, its sizes, of which that of a side it lacks is 0, its limit in tokens. */
export interface EncoderResponse {
  name: string;
  fingerprint: string;
  engine: string;
  precision: string;
  dense_dimension: number;
  colbert_dimension: number;
  vocabulary_size: number;
  max_length: number;
  pooling: string;
  lexical: "plain" | "idf";
  adapter: null;
}

/** The field, or one of a list's strings, has the value. */
export interface EqFilter {
  eq: Record<string, string | boolean | number>;
}

/** What went wrong. */
export interface ErrorDetail {
  type: string;
  message: string;
  param: string | null;
  code: string;
}

/** The shape of every error. */
export interface ErrorResponse {
  error: ErrorDetail;
}

/** Stored documents as examples: of what the hits shall be like, and of what not. None of them is a hit.

For BM25 the query is the text of those in `like`. */
export interface ExamplesQuery {
  like: Array<string>;
  unlike?: Array<string> | null;
}

/** The field has a value. */
export interface ExistsFilter {
  exists: string;
}

/** Where a hit's scores come from. */
export interface ExplanationResponse {
  terms: Array<TermMatch>;
  alignment: Array<TokenAlignment>;
  bm25?: Array<WordMatch> | null;
  boosts?: Array<number> | null;
}

/** The commonest values of a field, of equally common ones the smaller first. */
export interface FacetResponse {
  values: Array<FacetValueResponse>;
  distinct: number;
  missing: number;
  unlisted?: number | null;
}

/** A value, and how many documents have it. */
export interface FacetValueResponse {
  value: string | boolean;
  count: number;
}

/** Metadata fields to declare over what a collection holds. */
export interface FieldsRequest {
  fields: Record<string, "keyword" | "integer" | "number" | "boolean" | "datetime">;
}

/** A kind of file. */
export interface FileKindResponse {
  name: string;
  endings: Array<string>;
  text: boolean;
  lines: boolean;
  packed: boolean;
  headings: boolean;
}

/** Files that imports and jobs read. */
export interface FilesResponse {
  kinds: Array<FileKindResponse>;
  packings: Array<string>;
}

/** A tree over the collection's declared fields, told apart by its one key; at most 16 levels, 1,000 conditions and 10,000 values. */
export type Filter = AndFilter | OrFilter | NotFilter | EqFilter | InFilter | GteFilter | GtFilter | LteFilter | LtFilter | ExistsFilter;

/** Points for every document that a filter matches. */
export interface FilterBoost {
  filter: Filter;
  add: number;
}

/** Which documents to give. */
export interface GetDocumentsRequest {
  ids: Array<string | number>;
  partition?: string | null;
  min_position?: number | string | null;
}

/** Stored documents in the order of their ids in the request; of several collections those of each. */
export interface GetDocumentsResponse {
  documents: Array<DocumentResponse>;
  missing: Array<string>;
}

/** The field's value is more than the limit. */
export interface GtFilter {
  gt: Record<string, string | boolean | number>;
}

/** The field's value is the limit or more; strings compare by their UTF-8 bytes. */
export interface GteFilter {
  gte: Record<string, string | boolean | number>;
}

/** A part of a text that has what the query says. */
export interface HighlightResponse {
  start: number;
  end: number;
}

/** A document found. */
export interface HitResponse {
  id: string;
  collection?: string | null;
  score: number;
  scores?: HitScoresResponse;
  confidence?: number | null;
  window?: HitWindowResponse | null;
  title?: string | null;
  text?: string;
  metadata?: Record<string, unknown>;
  partition?: string | null;
  explanation?: ExplanationResponse | null;
  highlights?: Array<HighlightResponse> | null;
  title_highlights?: Array<HighlightResponse> | null;
}

/** The scores before weighting; null where the collection does not store a side, or the query lacks it. */
export interface HitScoresResponse {
  dense: number | null;
  sparse: number | null;
  colbert: number | null;
  bm25?: number | null;
  boost?: number | null;
  reranker?: number | null;
}

/** The window of a document that matches best: the one that would score highest by itself. */
export interface HitWindowResponse {
  index: number;
  start: number;
  end: number;
}

/** A column of the file, or an entry of its objects `metadata`. */
export interface ImportColumn {
  name: string;
  samples: Array<unknown>;
  type: "keyword" | "integer" | "number" | "boolean" | "datetime" | null;
}

/** How the file is read: as the request says, or as it was found. */
export interface ImportOptions {
  text_field: string | null;
  title_field: string | null;
  id_field: string | null;
  generate_ids: boolean;
  encoding: string | null;
  delimiter: string | null;
  split: string | null;
}

/** What an import would read; nothing is written. */
export interface ImportPreview {
  columns: Array<ImportColumn>;
  options: ImportOptions;
  documents: Array<DocumentResponse>;
  skipped: number;
  reasons: Array<string>;
  problem: string | null;
}

/** A line of the answer: what is written so far and on the disk. The last one says `done`, or `error`. */
export interface ImportProgress {
  documents?: number | null;
  skipped?: number | null;
  position?: number | string | null;
  fraction?: number | null;
  done?: boolean | null;
  reasons?: Array<string> | null;
  error?: ErrorDetail | null;
}

/** The field, or one of a list's strings, has one of the values. */
export interface InFilter {
  in: Record<string, Array<string | boolean | number>>;
}

/** What this server is. */
export interface InfoResponse {
  name: "tercet";
  version: string;
  encoder: EncoderResponse;
  adapters: Array<AdapterResponse>;
  encoding_settings: Record<string, unknown>;
  limits: LimitsResponse;
  files: FilesResponse;
}

/** Jobs, the newest first. */
export interface JobList {
  jobs: Array<JobResponse>;
  next?: string | null;
}

/** A batch build of a collection, which takes effect in one step when it is done. */
export interface JobRequest {
  source: string | Array<string>;
  mode?: "replace" | "upsert" | null;
  model?: string | null;
  adapter?: string | null;
  reading?: ReadingRequest | null;
  engine?: "local" | "ray" | null;
  on_error?: "stop" | "skip" | null;
}

/** A job's progress and outcome. Times are ISO 8601 in UTC. */
export interface JobResponse {
  id: string;
  collection: string;
  source: string | Array<string>;
  adapter: string | null;
  mode: "replace" | "upsert";
  engine: "local" | "ray";
  state: "queued" | "running" | "succeeded" | "failed" | "cancelled";
  documents_done: number;
  documents_total: number | null;
  phase: "reading" | "sampling" | "learning" | "encoding" | "indexing" | null;
  fraction: number;
  tokens: number;
  on_error: "stop" | "skip";
  reading: Record<string, unknown>;
  skipped: number;
  skips: Array<string>;
  truncated: number;
  snapshot: string | null;
  error: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
}

/** Writes on the disk that no segment has yet; `bytes` are those of its files. */
export interface LedgerResponse {
  entries: number;
  bytes: number;
}

/** What one request may ask for. */
export interface LimitsResponse {
  body_bytes: number;
  texts: number;
  characters: number;
  documents: number;
  top_k: number;
  queries: number;
  query_hits: number;
  candidates: number;
  request_tokens: number;
  write_documents: number;
  write_tokens: number;
  page_documents: number;
}

/** The field's value is less than the limit. */
export interface LtFilter {
  lt: Record<string, string | boolean | number>;
}

/** The field's value is the limit or less. */
export interface LteFilter {
  lte: Record<string, string | boolean | number>;
}

/** A flush and merges have begun. */
export interface MergeResponse {
  merging: true;
}

/** The filter does not match; so it is where the document has no value. */
export interface NotFilter {
  not: Filter;
}

/** At least one of the filters matches. */
export interface OrFilter {
  or: Array<Filter>;
}

/** An array as base64 of its little-endian float32 values, row by row. */
export interface PackedArray {
  data: string;
  shape: Array<number>;
  dtype?: "float32";
}

/** An array as base64 of its little-endian values, row by row. */
export interface PackedValues {
  data: string;
  shape: Array<number>;
  dtype: "float32" | "float16" | "int8" | "uint8";
}

/** A vector, or one vector for each token, as `/embed` gives it for `"encoding": "base64"`. */
export interface PackedVectors {
  data: string;
  shape: Array<number>;
  dtype?: "float32" | null;
}

/** What an answer lacks. */
export interface PartialResponse {
  shards: Array<string>;
}

/** What to change of a document. */
export interface PatchDocumentRequest {
  metadata: Record<string, unknown>;
  merge?: boolean | null;
  idempotency_key?: string | null;
  if_position?: number | string | null;
}

/** The change is on the disk. */
export interface PatchDocumentResponse {
  position: number | string;
}

/** Documents to add, or to replace where their ids are there. */
export interface PutDocumentsRequest {
  documents: Array<DocumentRequest>;
  create?: boolean | null;
  idempotency_key?: string | null;
  if_position?: number | string | null;
}

/** Documents that are on the disk, and that the next search sees. */
export interface PutDocumentsResponse {
  upserted: number;
  position: number | string;
  usage: Usage;
  truncated?: number | null;
}

/** The hits of one of several queries, best first; ties in order of id. */
export interface QueryResult {
  query: QueryUsage;
  took_ms: TookMs;
  exhausted: boolean;
  confident?: boolean | null;
  hits: Array<HitResponse>;
}

/** The query's lexical weights, and what the collection multiplies each by; one place for each term. */
export interface QueryTermsResponse {
  token_ids: Array<number>;
  tokens: Array<string>;
  weights: Array<number>;
  idf: Array<number>;
}

/** How the query was encoded; 0 tokens for ready representations. */
export interface QueryUsage {
  tokens: number;
  truncated: boolean;
  terms?: QueryTermsResponse | null;
}

/** How a source is read, where its columns have other names than the usual ones, and cut into passages.

A name may be a path into nested objects and lists of them, its parts joined by dots. */
export interface ReadingRequest {
  text_field?: string | null;
  title_field?: string | null;
  id_field?: string | null;
  partition_field?: string | null;
  metadata_fields?: Array<string> | null;
  no_metadata_fields?: Array<string> | null;
  generate_ids?: boolean | null;
  infer_fields?: boolean | null;
  columns?: Array<string> | null;
  encoding?: string | null;
  delimiter?: string | null;
  format?: "jsonl" | "json" | "csv" | "tsv" | "parquet" | "arrow" | "markdown" | "html" | "pdf" | "text" | null;
  records?: string | null;
  split?: "markdown" | "paragraphs" | "tokens" | null;
  split_size?: number | null;
}

/** What is ready; an encoder worker, which has no documents, says `status` alone. */
export interface ReadyResponse {
  status: "ready";
  reads?: "ready";
  writes?: "ready" | "storage_full" | "unavailable" | "elsewhere";
}

/** Ready representations of a query, made with the collection's encoder: an item of `embeddings` as
`/embed` gives it for `"input_type": "query"`.

A side may be missing only where its weight and its number of candidates are 0. */
export interface RepresentationsQuery {
  dense?: Array<number> | PackedVectors | null;
  sparse?: SparseQuery | null;
  colbert?: Array<Array<number>> | PackedVectors | null;
  text?: string | null;
  tokens?: number | null;
  truncated?: boolean | null;
}

/** Documents to order by their scores with a query. */
export interface RerankRequest {
  query: string;
  inputs: Array<string>;
  top_k?: number | null;
  collection?: string | null;
  weights?: RerankWeightsRequest | "sum" | "miracl" | "mldr" | "flag" | null;
  model?: string | null;
  adapter?: string | null;
}

/** Results, best first; ties in the request's order. */
export interface RerankResponse {
  query: QueryUsage;
  results: Array<RerankResult>;
  usage: Usage;
}

/** One document's scores; `index` is its place in the request. */
export interface RerankResult {
  index: number;
  score: number;
  scores: ScoresResponse;
  truncated: boolean;
}

/** Weights of the three scores in the sum; one that is not given is 1, and 0 leaves a side out. */
export interface RerankWeightsRequest {
  dense?: number | null;
  sparse?: number | null;
  colbert?: number | null;
}

/** Where a backup is restored to. */
export interface RestoreRequest {
  name?: string | null;
}

/** The three scores before weighting; null where the collection does not store that side. */
export interface ScoresResponse {
  dense: number | null;
  sparse: number | null;
  colbert: number | null;
}

/** The last hit that is known already. */
export interface SearchAfter {
  score: number;
  id: string;
  collection?: string | null;
}

/** A result for each of `queries`, in order. `weights` and `candidates` are those that were used. */
export interface SearchManyResponse {
  collection: string;
  snapshot: string;
  weights: WeightsResponse;
  candidates: CandidatesResponse;
  took_ms: TookMs;
  facets?: Record<string, FacetResponse> | null;
  partial?: PartialResponse | null;
  results: Array<QueryResult>;
}

/** Effort of the approximate dense search; by default what `tercet collection tune` stored. */
export interface SearchOptions {
  ef_search?: number | null;
  nprobe?: number | null;
}

/** A query to a collection. */
export interface SearchRequest {
  collection: string;
  query?: string | RepresentationsQuery | StoredDocumentQuery | ExamplesQuery | null;
  queries?: Array<string | RepresentationsQuery | StoredDocumentQuery | ExamplesQuery> | null;
  top_k?: number | null;
  weights?: SearchWeightsRequest | "sum" | "miracl" | "mldr" | "flag" | null;
  candidates?: CandidatesRequest | null;
  filter?: Filter | null;
  partition?: string | null;
  adapter?: string | null;
  explain?: boolean | null;
  highlight?: boolean | null;
  reranker?: string | null;
  search_options?: SearchOptions | null;
  offset?: number | null;
  search_after?: SearchAfter | null;
  snapshot?: string | null;
  min_position?: number | string | null;
  allow_partial?: boolean | null;
  min_score?: number | null;
  min_confidence?: number | null;
  include?: Array<"scores" | "confidence" | "window" | "title" | "text" | "metadata" | "terms"> | null;
  group_by?: string | null;
  fusion?: "sum" | "rrf" | null;
  boosts?: Array<Boost> | null;
  facets?: Record<string, number> | Array<string> | null;
}

/** Hits, best first; ties in order of id, then of collection. `weights` and `candidates` are those that
were used. Those of a re-ranker come in its order, and ties in that of `score`. */
export interface SearchResponse {
  collection: string;
  snapshot: string;
  query: QueryUsage;
  weights: WeightsResponse;
  candidates: CandidatesResponse;
  took_ms: TookMs;
  exhausted: boolean;
  confident?: boolean | null;
  facets?: Record<string, FacetResponse> | null;
  partial?: PartialResponse | null;
  hits: Array<HitResponse>;
}

/** Weights of the scores in the sum; 0 leaves a side out. One of the three that is not given is 1, or 0
where the encoder lacks that side, and `bm25`, of a collection that was created with it, is 0. */
export interface SearchWeightsRequest {
  dense?: number | null;
  sparse?: number | null;
  colbert?: number | null;
  bm25?: number | null;
}

/** Lexical weights of a text; ids ascend, and the three lists go together. */
export interface SparseEmbedding {
  token_ids: Array<number>;
  weights: Array<number>;
  tokens: Array<string>;
}

/** Lexical weights of a query, as `/embed` gives them. */
export interface SparseQuery {
  token_ids: Array<number>;
  weights: Array<number>;
  tokens?: Array<string> | null;
}

/** What a collection holds, and how far its upkeep is. */
export interface StatisticsResponse {
  name: string;
  documents: number;
  deleted: number;
  segments: number;
  bytes: Record<string, number>;
  unpublished: UnpublishedResponse;
  ledger: LedgerResponse;
  position: number | string;
  published_position: number | string;
  flushing: boolean;
  merging: boolean;
}

/** The process answers. */
export interface StatusResponse {
  status: "ok";
}

/** A stored document as the query: its representations, and its text for BM25. It is no hit itself. */
export interface StoredDocumentQuery {
  id: string;
  collection?: string | null;
  window?: number | null;
}

/** What is stored of a document: its three representations, or where it is divided into windows those of
each. `PUT` takes it as it is, but pools token vectors again: into a collection with token pooling put the
text. */
export interface StoredDocumentRepresentations {
  fingerprint: string;
  position: number | string;
  dense?: Array<number> | PackedArray | null;
  sparse?: SparseEmbedding | null;
  colbert?: Array<Array<number>> | PackedArray | null;
  windows?: Array<StoredWindow> | null;
}

/** What is stored of a window. */
export interface StoredWindow {
  dense: Array<number> | PackedArray;
  sparse: SparseEmbedding;
  colbert?: Array<Array<number>> | PackedArray | null;
  start: number;
  end: number;
}

/** A token that query and document share. `product` is that of the two weights and `idf`; the products add
up to the lexical score. */
export interface TermMatch {
  token_id: number;
  token: string;
  query_weight: number;
  idf: number;
  document_weight: number;
  product: number;
  window?: number | null;
}

/** A query token's best document token; the mean of the similarities is the colbert score.

Positions count token vectors. A token is null where its text is not known. */
export interface TokenAlignment {
  query_position: number;
  query_token: string | null;
  document_position: number;
  document_token: string | null;
  similarity: number;
  prompt?: boolean | null;
  window?: number | null;
}

/** Milliseconds of each stage. */
export interface TookMs {
  encode: number;
  retrieve: number;
  score: number;
  total: number;
  rerank?: number | null;
}

/** Documents in memory that no segment has yet. */
export interface UnpublishedResponse {
  documents: number;
  bytes: number;
}

/** Which documents to change, by ids or filter, a partition or both, and how. */
export interface UpdateDocumentsRequest {
  ids?: Array<string | number> | null;
  filter?: Filter | null;
  partition?: string | null;
  metadata: Record<string, unknown>;
  merge?: boolean | null;
  idempotency_key?: string | null;
}

/** The changes are on the disk. */
export interface UpdateDocumentsResponse {
  updated: number;
  position: number | string;
}

/** What a request cost. */
export interface Usage {
  tokens: number;
}

/** What searches that give no weights or candidates use. */
export interface UsedDefaults {
  weights: WeightsResponse;
  candidates: CandidatesResponse;
  stored: boolean;
}

/** An adapter, null for the base, and its weight for a text; a text's weights sum to 1. */
export interface WeighedAdapter {
  adapter: string | null;
  weight: number;
}

/** Weights of the scores in the sum. */
export interface WeightsResponse {
  dense: number;
  sparse: number;
  colbert: number;
  bm25?: number | null;
}

/** Those of a document's window. */
export interface WindowRepresentations {
  dense?: Array<number> | PackedVectors | null;
  sparse?: SparseQuery | null;
  colbert?: Array<Array<number>> | PackedVectors | null;
  tokens?: number | null;
  truncated?: boolean | null;
  start: number;
  end: number;
}

/** Windows in which documents beyond them are encoded. */
export interface WindowRequest {
  tokens: number;
  overlap?: number | null;
}

/** Windows in which documents beyond them are encoded. */
export interface WindowResponse {
  tokens: number;
  overlap: number;
}

/** A term of BM25, a stem or a pair of characters, that query and document share. `product` is the scaled
product of `query_count`, `idf` and `document_weight`; the products add up to the BM25 score. */
export interface WordMatch {
  term: string;
  query_count: number;
  idf: number;
  frequency: number;
  document_weight: number;
  product: number;
}
