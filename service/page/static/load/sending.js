// Documents on their way to the server: batches under idempotency keys, tried again where it is busy.

import { api, ApiError, collectionPath } from "../api.js";

const DOCUMENTS = 64; // of a batch
const CHARACTERS = 2 ** 18;
const REFUSED = [400, 413, 422]; // what is wrong with the documents themselves
const BUSY = [429, 503];
const TRIES = 20;

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

/** Sends documents to one collection. */
export class Sender {
  /**
   * signal: ends it. told: {refused(item, message), waiting(seconds), written(documents), failed(error)};
   * failed is asked, and what it waits for goes before the next try.
   */
  constructor(collection, signal, told) {
    this._path = collectionPath(collection, "documents");
    this._signal = signal;
    this._told = told;
    this._batch = [];
    this._characters = 0;
    this._run = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    this._requests = 0;
  }

  /** Takes one: {document, …}; sends what has gathered where that is enough. */
  async add(item) {
    this._batch.push(item);
    this._characters += item.document.text.length;
    if (this._batch.length >= DOCUMENTS || this._characters >= CHARACTERS) await this.flush();
  }

  /** Sends what has gathered. */
  async flush() {
    const batch = this._batch;
    [this._batch, this._characters] = [[], 0];
    if (batch.length) await this._send(batch);
  }

  /** Sends a batch; one that is refused in halves, until those that are to blame are alone. */
  async _send(batch) {
    const problem = await this._put(batch.map((each) => each.document));
    if (problem === null) return;
    if (batch.length === 1) {
      this._told.refused(batch[0], problem.message);
      return;
    }
    const half = Math.ceil(batch.length / 2);
    await this._send(batch.slice(0, half));
    await this._send(batch.slice(half));
  }

  /** Null, or the refusal. Whatever else goes wrong is tried again under the same key, so that nothing is written twice. */
  async _put(documents) {
    const json = { documents, idempotency_key: `${this._run}-${(this._requests += 1)}` };
    for (let tries = 1; ; tries += 1) {
      try {
        await api("PUT", this._path, { json, signal: this._signal });
        this._told.written(documents.length);
        return null;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (REFUSED.includes(error.status)) return error;
        if (BUSY.includes(error.status) && tries % TRIES !== 0) {
          const seconds = error.retryAfter ?? 2;
          this._told.waiting(seconds);
          await wait(seconds, this._signal);
        } else await this._told.failed(error);
      }
    }
  }
}
