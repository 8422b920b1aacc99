// The server's HTTP API, with the key of this tab.

const KEY = "tercet-key";

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
export async function api(method, path, { json, params, signal } = {}) {
  const query = params ? `?${new URLSearchParams(params)}` : "";
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = {};
    if (key !== null) headers.Authorization = `Bearer ${key}`;
    if (json !== undefined) headers["Content-Type"] = "application/json";
    const body = json === undefined ? undefined : JSON.stringify(json);
    let response;
    try {
      response = await fetch(path + query, { method, headers, body, signal, credentials: "omit", cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, { message: "" });
    }
    if (response.status === 401 && (await newKey(key !== null))) continue;
    const answer = await answerOf(response);
    if (response.ok) return answer;
    const retryAfter = Number(response.headers.get("Retry-After")) || null;
    throw new ApiError(response.status, answer?.error ?? { message: answer?.message ?? String(response.status) }, retryAfter);
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
