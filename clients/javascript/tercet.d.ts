// The client of a Tercet server. Requests and answers are described in types.d.ts.

import type * as t from "./types.js";

export type * from "./types.js";

export class TercetError extends Error {}
export class ConnectionFailedError extends TercetError {}
export class ApiError extends TercetError {
  readonly status: number;
  readonly code: string;
  readonly param: string | null;
}
export class NotFoundError extends ApiError {}
export class ConflictError extends ApiError {}
export class OverloadedError extends ApiError {}

export interface ClientOptions {
  /** Of the server, where it needs one. */
  key?: string;
  /** Seconds of one attempt; 60 by default. */
  timeout?: number;
  /** Repeats of a request to a busy server at most; 8 by default. */
  retries?: number;
  fetch?: typeof fetch;
}

export interface TextEmbedding {
  tokens: number;
  truncated: boolean;
  dense?: Vector;
  /** With int8: what turns its values back. */
  denseScale?: number;
  sparse?: { tokenIds: Int32Array; weights: Float32Array };
  /** One vector for each token. */
  colbert?: Vector[];
  colbertScales?: Float32Array;
}

export type Dtype = "float32" | "float16" | "int8" | "binary" | "ubinary";
/** Float32Array, or of another dtype: float16 as Uint16Array of its bits, int8 and binary as Int8Array, ubinary as Uint8Array. */
export type Vector = Float32Array | Uint16Array | Int8Array | Uint8Array;

/** A vector of a dtype as float32; signs become 1 and -1, scaled to length 1. scale: of int8. */
export function decodeVector(values: Vector, dtype: Dtype, scale?: number): Float32Array;

export interface Embeddings {
  model: string;
  fingerprint: string;
  dtype: Dtype;
  embeddings: TextEmbedding[];
}

export interface EmbedOptions {
  inputType?: "document" | "query";
  outputs?: Array<"dense" | "sparse" | "colbert">;
  truncate?: boolean;
  maxLength?: number;
  dimensions?: number;
  /** Of dense and colbert; float32 by default. `decodeVector` turns others back. */
  dtype?: Dtype;
  /** How many tokens share one token vector. */
  colbertPool?: number;
  /** An encoder that the server lists at /v1/models. */
  model?: string;
  adapter?: string;
}

export interface SearchRequestOptions {
  topK?: number;
  weights?: t.SearchRequest["weights"];
  candidates?: t.CandidatesRequest;
  filter?: t.Filter;
  /** Only documents of this partition are searched. */
  partition?: string;
  adapter?: string;
  explain?: boolean;
  /** Which parts of hits have what the query says. */
  highlight?: boolean;
  searchOptions?: t.SearchOptions;
  /** Hits to leave out before the first. */
  offset?: number;
  /** The last hit that is known; for one query. */
  searchAfter?: t.SearchAfter;
  /** Of a former answer: 409 where it is gone. */
  snapshot?: string;
  minScore?: number;
  /** Of hits at least: the probability that they answer. */
  minConfidence?: number;
  /** Parts of a hit beside its id and score. */
  include?: t.SearchRequest["include"];
  groupBy?: string;
  facets?: Record<string, number>;
  /** Points that are added to scores for what fields say. */
  boosts?: t.Boost[];
  /** How the scores of the sides become one. */
  fusion?: "sum" | "rrf";
  /** A re-ranker, in the order of which the hits come. */
  reranker?: string;
}

export type Query = string | t.RepresentationsQuery | t.StoredDocumentQuery | t.ExamplesQuery;

export interface RerankOptions {
  topK?: number;
  collection?: string;
  weights?: t.RerankRequest["weights"];
  model?: string;
  adapter?: string;
}

export interface Page {
  /** So many at most; without both, all are listed. */
  limit?: number;
  /** Those behind the one of this name or id. */
  after?: string;
}

export interface Paging {
  /** Items of a request; 100 by default. */
  page?: number;
}

export interface WriteOptions {
  idempotencyKey?: string;
  ifPosition?: number | string;
}

export interface ReadOptions {
  /** Of a write's answer, after which is read. */
  minPosition?: number | string;
}

export interface Upserted {
  documents: number;
  tokens: number;
  /** Of the last write; behind a router one number a shard, as `3.17.2`. */
  position: number | string;
}

export interface UpsertOptions {
  /** Documents of a request; 100 by default. */
  batch?: number;
  /** Requests at a time; 4 by default. */
  inFlight?: number;
  progress?: (done: Upserted) => void;
}

/** How the file of an import is read: the server's query parameters. */
export interface ImportOptions {
  textField?: string;
  titleField?: string;
  idField?: string;
  metadataField?: string[];
  noMetadataField?: string[];
  generateIds?: boolean;
  columns?: string;
  encoding?: string;
  delimiter?: string;
  split?: "markdown" | "paragraphs" | "tokens";
  splitSize?: number;
  onError?: "stop" | "skip";
}

export class Client {
  constructor(url?: string, options?: ClientOptions);
  embed(inputs: string | string[], options?: EmbedOptions): Promise<Embeddings>;
  search(collection: string, query: Query, options?: SearchRequestOptions): Promise<t.SearchResponse>;
  searchMany(
    collection: string,
    queries: Query[],
    options?: Omit<SearchRequestOptions, "searchAfter">,
  ): Promise<t.SearchManyResponse>;
  rerank(query: string, inputs: string[], options?: RerankOptions): Promise<t.RerankResponse>;
  collections(page?: Page): Promise<t.CollectionResponse[]>;
  iterCollections(options?: Paging): AsyncGenerator<t.CollectionResponse, void>;
  collection(name: string): Promise<t.CollectionResponse>;
  createCollection(name: string, settings?: t.CollectionRequest): Promise<t.CollectionResponse>;
  declareFields(name: string, fields: t.FieldsRequest["fields"]): Promise<t.CollectionResponse>;
  /** The weights and candidates of searches that give none, stored or usual. */
  defaults(name: string): Promise<t.UsedDefaults>;
  /** Stores what searches use where they give no weights or candidates. */
  storeDefaults(
    name: string,
    weights: t.DefaultsRequest["weights"],
    candidates?: t.DefaultsRequest["candidates"],
  ): Promise<t.CollectionResponse>;
  /** Has searches use the usual weights and candidates again. */
  removeDefaults(name: string): Promise<t.CollectionResponse>;
  deleteCollection(name: string): Promise<void>;
  statistics(name: string): Promise<t.StatisticsResponse>;
  merge(name: string): Promise<t.MergeResponse>;
  putDocuments(collection: string, documents: t.DocumentRequest[], options?: WriteOptions): Promise<t.PutDocumentsResponse>;
  upsert(
    collection: string,
    documents: Iterable<t.DocumentRequest> | AsyncIterable<t.DocumentRequest>,
    options?: UpsertOptions,
  ): Promise<Upserted>;
  document(
    collection: string,
    id: string,
    options?: ReadOptions & { representations?: boolean; partition?: string },
  ): Promise<t.DocumentResponse>;
  documents(
    collection: string,
    options?: Paging & ReadOptions & { filter?: t.Filter; partition?: string; orderBy?: string; descending?: boolean },
  ): AsyncGenerator<t.DocumentResponse, void>;
  patchDocument(
    collection: string,
    id: string,
    metadata: Record<string, unknown>,
    options?: WriteOptions & { merge?: boolean },
  ): Promise<t.PatchDocumentResponse>;
  countDocuments(
    collection: string,
    filter?: t.Filter,
    options?: ReadOptions & { partition?: string },
  ): Promise<number>;
  getDocuments(
    collection: string,
    ids: string[],
    options?: ReadOptions & { partition?: string },
  ): Promise<t.GetDocumentsResponse>;
  updateDocuments(
    collection: string,
    metadata: Record<string, unknown>,
    which: { ids?: string[]; filter?: t.Filter; partition?: string; merge?: boolean; idempotencyKey?: string },
  ): Promise<t.UpdateDocumentsResponse>;
  deleteDocuments(
    collection: string,
    which: { ids?: string[]; filter?: t.Filter; partition?: string; idempotencyKey?: string },
  ): Promise<t.DeleteDocumentsResponse>;
  aliases(page?: Page): Promise<t.AliasResponse[]>;
  iterAliases(options?: Paging): AsyncGenerator<t.AliasResponse, void>;
  alias(name: string): Promise<t.AliasResponse>;
  putAlias(name: string, collection: string | string[]): Promise<t.AliasResponse>;
  deleteAlias(name: string): Promise<void>;
  createBackup(collection: string): Promise<t.BackupResponse>;
  backups(collection: string, page?: Page): Promise<t.BackupResponse[]>;
  iterBackups(collection: string, options?: Paging): AsyncGenerator<t.BackupResponse, void>;
  restoreBackup(collection: string, backup: string, options?: { name?: string }): Promise<t.CollectionResponse>;
  deleteBackup(collection: string, backup: string): Promise<void>;
  importFile(
    collection: string,
    filename: string,
    content: BodyInit,
    options?: ImportOptions,
  ): AsyncGenerator<t.ImportProgress, void>;
  previewImport(
    collection: string,
    filename: string,
    content: BodyInit,
    options?: ImportOptions,
  ): Promise<t.ImportPreview>;
  startJob(
    collection: string,
    source: string | string[],
    options?: {
      mode?: "replace" | "upsert";
      onError?: "stop" | "skip";
      model?: string;
      adapter?: string;
      reading?: t.ReadingRequest;
    },
  ): Promise<t.JobResponse>;
  jobs(page?: Page): Promise<t.JobResponse[]>;
  iterJobs(options?: Paging): AsyncGenerator<t.JobResponse, void>;
  job(id: string): Promise<t.JobResponse>;
  waitForJob(id: string, options?: { pollSeconds?: number }): Promise<t.JobResponse>;
  cancelJob(id: string): Promise<t.JobResponse>;
  info(): Promise<t.InfoResponse>;
  healthy(): Promise<boolean>;
  ready(): Promise<boolean>;
  metrics(): Promise<string>;
}
