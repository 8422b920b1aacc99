// The client of a Tercet server, for Node and browsers. Types are in tercet.d.ts.

import { embeddingsOf } from "./arrays.js";
import { ApiError, ConnectionFailedError, errorOf } from "./errors.js";

export { decodeVector } from "./arrays.js";
export { ApiError, ConflictError, ConnectionFailedError, NotFoundError, OverloadedError, TercetError } from "./errors.js";

const DEFAULT_URL = "http://127.0.0.1:8080";
const BINARY = "application/x-safetensors";
const BUSY = [429, 503];
const FIRST_PAUSE = 0.5; // seconds, where the server names none
const LONGEST_PAUSE = 30;
const PAGE = 100;
const ENDED = ["succeeded", "failed", "cancelled"];

/** A Tercet server. */
export class Client {
  #url;
  #headers;
  #timeout;
  #retries;
  #fetch;

  constructor(url = DEFAULT_URL, { key, timeout = 60, retries = 8, fetch = globalThis.fetch } = {}) {
    if (!/^(https?:\/\/|\/|$)/.test(url)) throw new TypeError(`url is ${JSON.stringify(url)}; give one such as ${DEFAULT_URL}`);
    this.#url = url.replace(/\/+$/, "");
    this.#headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    this.#timeout = timeout;
    this.#retries = retries;
    this.#fetch = fetch.bind(globalThis);
  }

  async embed(inputs, options = {}) {
    const answer = await this.#send("POST", "/embed", {
      body: { inputs, ...named(options) },
      headers: { Accept: BINARY },
    });
    return embeddingsOf(await answer.arrayBuffer());
  }

  search(collection, query, options = {}) {
    return this.#json("POST", "/search", { body: { collection, query, ...named(options) } });
  }

  searchMany(collection, queries, options = {}) {
    return this.#json("POST", "/search", { body: { collection, queries, ...named(options) } });
  }

  async rerank(query, inputs, options = {}) {
    const body = { query, inputs, ...named(options) };
    return this.#json("POST", "/rerank", { body });
  }

  async collections(page) {
    return (await this.#json("GET", "/collections", { query: pageOf(page) })).collections;
  }

  iterCollections({ page } = {}) {
    return this.#pages("/collections", "collections", page);
  }

  collection(name) {
    return this.#json("GET", path("collections", name));
  }

  createCollection(name, settings = {}) {
    return this.#json("PUT", path("collections", name), { body: settings, again: false });
  }

  declareFields(name, fields) {
    return this.#json("POST", path("collections", name, "fields"), { body: { fields } });
  }

  defaults(name) {
    return this.#json("GET", path("collections", name, "defaults"));
  }

  storeDefaults(name, weights, candidates = null) {
    return this.#json("PUT", path("collections", name, "defaults"), { body: { weights, candidates } });
  }

  removeDefaults(name) {
    return this.#json("DELETE", path("collections", name, "defaults"));
  }

  async deleteCollection(name) {
    await this.#send("DELETE", path("collections", name), { again: false });
  }

  statistics(name) {
    return this.#json("GET", path("collections", name, "stats"));
  }

  merge(name) {
    return this.#json("POST", path("collections", name, "merge"), { body: {} });
  }

  putDocuments(collection, documents, options = {}) {
    const body = { idempotency_key: crypto.randomUUID(), ...named(options), documents };
    return this.#json("PUT", path("collections", collection, "documents"), { body });
  }

  /** Puts all documents of an iterable, which is read no further ahead than requests are under way. */
  async upsert(collection, documents, { batch = 100, inFlight = 4, progress } = {}) {
    const done = { documents: 0, tokens: 0, position: 0 };
    const waiting = [];
    const settle = async () => {
      const answer = await waiting.shift();
      done.documents += answer.upserted;
      done.tokens += answer.usage.tokens;
      done.position = later(done.position, answer.position);
      progress?.({ ...done });
    };
    try {
      for await (const some of batches(documents, batch)) {
        if (waiting.length === inFlight) await settle();
        waiting.push(this.putDocuments(collection, some));
      }
      while (waiting.length > 0) await settle();
    } finally {
      await Promise.allSettled(waiting);
    }
    return done;
  }

  async document(collection, id, { representations = false, partition, minPosition } = {}) {
    const query = { ...(representations && { representations: "true" }), ...from(minPosition) };
    if (partition !== undefined) query.partition = partition;
    return this.#json("GET", path("collections", collection, "documents", id), { query });
  }

  /** All documents in order of id, or of a declared field, fetched page by page. */
  documents(collection, { filter, partition, orderBy, descending = false, page, minPosition } = {}) {
    const query = from(minPosition);
    if (orderBy !== undefined) Object.assign(query, { order_by: orderBy, order: descending ? "desc" : "asc" });
    if (filter !== undefined) query.filter = JSON.stringify(filter);
    if (partition !== undefined) query.partition = partition;
    return this.#pages(path("collections", collection, "documents"), "documents", page, query);
  }

  async patchDocument(collection, id, metadata, options = {}) {
    const body = { idempotency_key: crypto.randomUUID(), ...named(options), metadata };
    return this.#json("PATCH", path("collections", collection, "documents", id), { body });
  }

  async countDocuments(collection, filter, { partition, minPosition } = {}) {
    const body = { filter, partition, ...from(minPosition) };
    return (await this.#json("POST", path("collections", collection, "documents", "count"), { body })).count;
  }

  getDocuments(collection, ids, { partition, minPosition } = {}) {
    const body = { ids, partition, ...from(minPosition) };
    return this.#json("POST", path("collections", collection, "documents", "get"), { body });
  }

  updateDocuments(collection, metadata, { ids, filter, partition, merge, idempotencyKey = crypto.randomUUID() }) {
    const body = { metadata, ids, filter, partition, merge, idempotency_key: idempotencyKey };
    return this.#json("POST", path("collections", collection, "documents", "update"), { body });
  }

  deleteDocuments(collection, { ids, filter, partition, idempotencyKey = crypto.randomUUID() }) {
    const body = { ids, filter, partition, idempotency_key: idempotencyKey };
    return this.#json("POST", path("collections", collection, "documents", "delete"), { body });
  }

  async aliases(page) {
    return (await this.#json("GET", "/aliases", { query: pageOf(page) })).aliases;
  }

  iterAliases({ page } = {}) {
    return this.#pages("/aliases", "aliases", page);
  }

  alias(name) {
    return this.#json("GET", path("aliases", name));
  }

  putAlias(name, collection) {
    const body = Array.isArray(collection) ? { collections: collection } : { collection };
    return this.#json("PUT", path("aliases", name), { body });
  }

  async deleteAlias(name) {
    await this.#send("DELETE", path("aliases", name), { again: false });
  }

  createBackup(collection) {
    return this.#json("POST", path("collections", collection, "backups"), { again: false });
  }

  async backups(collection, page) {
    return (await this.#json("GET", path("collections", collection, "backups"), { query: pageOf(page) })).backups;
  }

  iterBackups(collection, { page } = {}) {
    return this.#pages(path("collections", collection, "backups"), "backups", page);
  }

  restoreBackup(collection, backup, { name } = {}) {
    const where = path("collections", collection, "backups", backup, "restore");
    return this.#json("POST", where, { body: { name }, again: false });
  }

  async deleteBackup(collection, backup) {
    await this.#send("DELETE", path("collections", collection, "backups", backup), { again: false });
  }

  /** Writes the documents of a file, and yields how far it is. options: the query's, such as textField. */
  async *importFile(collection, filename, content, options = {}) {
    const answer = await this.#import(collection, { filename, ...named(options) }, content);
    let rest = "";
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const found = JSON.parse(line);
        if (found.error) throw new ApiError(answer.status, found.error.message, found.error.code, found.error.param);
        yield found;
      }
    }
  }

  /** What an import would read: columns, and the first three documents. */
  async previewImport(collection, filename, content, options = {}) {
    return (await this.#import(collection, { filename, ...named(options), dry_run: true }, content)).json();
  }

  async startJob(collection, source, options = {}) {
    const body = { source, ...named(options) };
    return this.#json("POST", path("collections", collection, "jobs"), { body, again: false });
  }

  async jobs(page) {
    return (await this.#json("GET", "/jobs", { query: pageOf(page) })).jobs;
  }

  iterJobs({ page } = {}) {
    return this.#pages("/jobs", "jobs", page);
  }

  job(id) {
    return this.#json("GET", path("jobs", id));
  }

  /** The job once it has ended: succeeded, failed or cancelled. */
  async waitForJob(id, { pollSeconds = 0.5 } = {}) {
    for (;;) {
      const found = await this.job(id);
      if (ENDED.includes(found.state)) return found;
      await pause(pollSeconds);
    }
  }

  cancelJob(id) {
    return this.#json("DELETE", path("jobs", id));
  }

  info() {
    return this.#json("GET", "/info");
  }

  healthy() {
    return this.#saysYes("/health");
  }

  ready() {
    return this.#saysYes("/ready");
  }

  async metrics() {
    return (await this.#send("GET", "/metrics")).text();
  }

  async #saysYes(where) {
    try {
      return (await this.#attempt(`${this.#url}${where}`, { method: "GET" })).ok;
    } catch {
      return false;
    }
  }

  /** What a list holds, in requests of `size` items, which an answer has under the key `items`. */
  async *#pages(where, items, size = PAGE, query = {}) {
    const asked = { ...query, limit: String(size) };
    for (;;) {
      const found = await this.#json("GET", where, { query: asked });
      yield* found[items];
      if (found.next == null) return;
      asked.after = found.next;
    }
  }

  async #json(method, where, options) {
    return (await this.#send(method, where, options)).json();
  }

  /** The answer. again: a repeat does no harm where nobody knows whether the request arrived. */
  async #send(method, where, { body, query = {}, headers = {}, again = true } = {}) {
    const search = new URLSearchParams(query).toString();
    const url = `${this.#url}${where}${search && `?${search}`}`;
    const init = { method, headers: { ...this.#headers, ...headers } };
    if (body !== undefined) init.body = JSON.stringify(body);
    // Without a body too: a server asks it of pages of other servers for whatever changes something.
    if (method !== "GET") init.headers["Content-Type"] = "application/json";
    for (let attempt = 1; ; attempt += 1) {
      let answer;
      try {
        answer = await this.#attempt(url, init);
      } catch (error) {
        if (!again || attempt > this.#retries) {
          throw new ConnectionFailedError(`${this.#url} does not answer: ${error.cause ?? error}`, { cause: error });
        }
      }
      if (answer?.ok) return answer;
      if (answer && (!BUSY.includes(answer.status) || attempt > this.#retries)) throw await errorOf(answer);
      await answer?.body?.cancel();
      await pause(pauseBefore(attempt, answer));
    }
  }

  /** Sends a file. There is no limit of time: each group of documents takes its own. */
  async #import(collection, query, body) {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) for (const each of [value].flat()) search.append(name, String(each));
    const headers = { ...this.#headers, "Content-Type": "application/octet-stream" };
    const url = `${this.#url}${path("collections", collection, "import")}?${search}`;
    let answer;
    try {
      answer = await this.#fetch(url, { method: "POST", headers, body });
    } catch (error) {
      throw new ConnectionFailedError(`${this.#url} does not answer: ${error.cause ?? error}`, { cause: error });
    }
    if (!answer.ok) throw await errorOf(answer);
    return answer;
  }

  #attempt(url, init) {
    return this.#fetch(url, { ...init, signal: AbortSignal.timeout(this.#timeout * 1000) });
  }
}

/** Options under the server's names: idempotencyKey is idempotency_key. */
function named(options) {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name.replace(/[A-Z]/g, (big) => `_${big.toLowerCase()}`), value]),
  );
}

/** What a read after a write's position asks for. */
function from(minPosition) {
  return minPosition === undefined ? {} : { min_position: minPosition };
}

/** The later of two positions, shard by shard where they are of several; 0 is before all. */
function later(one, other) {
  if (typeof one === "number" && typeof other === "number") return Math.max(one, other);
  if (one === 0) return other;
  const others = other.split(".");
  return one.split(".").map((each, shard) => Math.max(each, others[shard])).join(".");
}

/** The parameters that ask for a page of a list; none for all of it. */
function pageOf({ limit, after } = {}) {
  return Object.fromEntries(Object.entries({ limit, after }).filter(([, value]) => value != null));
}

/** The path of these parts. A URL takes `.` and `..` as steps however they are encoded, which would lead elsewhere. */
function path(...parts) {
  const step = parts.find((part) => part === "." || part === "..");
  if (step !== undefined) {
    throw new RangeError(`"${step}" cannot be part of a URL; use getDocuments, updateDocuments and deleteDocuments`);
  }
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

function pause(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

function pauseBefore(attempt, answer) {
  const waits = answer?.headers.get("Retry-After");
  return /^\d+$/.test(waits ?? "") ? Number(waits) : Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1));
}

async function* batches(documents, size) {
  let some = [];
  for await (const document of documents) {
    some.push(document);
    if (some.length === size) {
      yield some;
      some = [];
    }
  }
  if (some.length > 0) yield some;
}
