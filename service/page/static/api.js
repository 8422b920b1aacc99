// The server's HTTP API, with the key of this tab.

const KEY = "tercet-key";
const STATUSES = { invalid_value: 422, too_large: 413, overloaded: 429, not_ready: 503, storage_full: 507 }; // by an error's type

/** What the server answered instead of what was asked for; status 0: it did not answer. */
export class ApiError extends Error {
  constructor(status, { message, code = null, param = null }, retryAfter = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
    this.retryAfter = retryAfter;
  }
}

let askKey = async () => null;

/** Who is asked for a key where the server wants one: (was another refused?) → the key, or null. */
export function onKeyNeeded(ask) {
  askKey = ask;
}

/** Whether a key is kept for this tab. */
export function hasKey() {
  return sessionStorage.getItem(KEY) !== null;
}

/** Forgets the key of this tab. */
export function forgetKey() {
  sessionStorage.removeItem(KEY);
}

let asking = null;

/** One question for a key at a time, however many requests need it. */
async function newKey(refused) {
  asking ||= askKey(refused).finally(() => {
    asking = null;
  });
  const key = await asking;
  if (key === null) return false;
  sessionStorage.setItem(KEY, key);
  return true;
}

/** The JSON that the server answers, null for none. Throws ApiError, or AbortError where `signal` says so. */
export async function api(method, path, options = {}) {
  return answerOf(await answered(method, path, options));
}

/** The text that the server answers. Throws as `api`. */
export async function apiText(path, signal) {
  return (await answered("GET", path, { signal })).text();
}

/** The JSON lines that the server answers a POST with, as they come. Throws as `api`, also where the last one is an error. */
export async function* apiLines(path, options) {
  const { body } = await answered("POST", path, options);
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let ended = false; !ended; ) {
      const { done, value } = await unlessGone(reader.read());
      if (done) throw new ApiError(0, { message: "" });
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.map((each) => JSON.parse(each))) {
        if (line.error) throw new ApiError(STATUSES[line.error.type] ?? 500, line.error);
        yield line;
        ended = line.done === true;
      }
    }
  } finally {
    reader.cancel().catch(() => null);
  }
}

/** The server's answer where it is no error. json or body: of the request; params: pairs or an object. */
async function answered(method, path, { json, body, params, signal }) {
  const query = params ? `?${new URLSearchParams(params)}` : "";
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = {};
    if (key !== null) headers.Authorization = `Bearer ${key}`;
    if (json !== undefined) headers["Content-Type"] = "application/json";
    const sent = json === undefined ? body : JSON.stringify(json);
    const response = await unlessGone(fetch(`.${path}${query}`, { method, headers, body: sent, signal, credentials: "omit", cache: "no-store" }));
    if (response.status === 401 && (await newKey(key !== null))) continue;
    if (response.ok) return response;
    const answer = await answerOf(response);
    const retryAfter = Number(response.headers.get("Retry-After")) || null;
    throw new ApiError(response.status, answer?.error ?? { message: answer?.message ?? String(response.status) }, retryAfter);
  }
}

/** What is awaited; an ApiError where the connection ends before it. */
async function unlessGone(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { message: "" });
  }
}

async function answerOf(response) {
  const text = await response.text();
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

const path = (...parts) => parts.map(encodeURIComponent).join("/");

/** The path of a collection, and below it. */
export function collectionPath(name, ...rest) {
  return `/collections/${path(name, ...rest)}`;
}
