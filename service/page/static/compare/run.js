// Both settings over the queries of a judged set: several queries in one request, as far as a server takes them.

import { api, ApiError } from "../api.js";
import { mean, ndcg, recall } from "./metrics.js";

const AT_ONCE = 25; // queries of a request
const DEPTH = 10;
const BUSY = [429, 503];
const TRIES = 20;

/**
 * For each query {query, grades, ranked: [A, B], ndcg: [A, B], recall: [A, B]}.
 * judged: [{query, grades}]; settings: two, as a search takes them; done: told of the number of queries behind.
 */
export async function compared(collection, judged, settings, done, signal) {
  const rows = [];
  for (let at = 0; at < judged.length; at += AT_ONCE) {
    const some = judged.slice(at, at + AT_ONCE);
    const rankings = [];
    for (const setting of settings) rankings.push(await rankingsOf(collection, some.map((each) => each.query), setting, signal));
    some.forEach(({ query, grades }, place) => {
      const ranked = rankings.map((each) => each[place]);
      rows.push({ query, grades, ranked, ndcg: ranked.map((each) => ndcg(each, grades, DEPTH)), recall: ranked.map((each) => recall(each, grades, DEPTH)) });
    });
    done(rows.length);
  }
  return rows;
}

async function rankingsOf(collection, queries, setting, signal) {
  const json = { collection, queries, top_k: DEPTH, include: [], ...setting };
  for (let tries = 1; ; tries += 1) {
    try {
      const { results } = await api("POST", "/search", { json, signal });
      return results.map(({ hits }) => hits.map((hit) => hit.id));
    } catch (error) {
      if (!(error instanceof ApiError) || !BUSY.includes(error.status) || tries === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * (error.retryAfter ?? 2)));
      signal.throwIfAborted();
    }
  }
}

/** Means of both settings, and in how many queries each is better by nDCG. */
export function summary(rows) {
  const means = (name) => [0, 1].map((side) => mean(rows.map((row) => row[name][side])));
  const better = [0, 1].map((side) => rows.filter((row) => row.ndcg[side] > row.ndcg[1 - side]).length);
  return { ndcg: means("ndcg"), recall: means("recall"), better };
}

/** The queries in which the two differ most by nDCG, then by recall. */
export function mostDifferent(rows, count) {
  const difference = (row, name) => Math.abs(row[name][1] - row[name][0]);
  const other = rows.filter((row) => difference(row, "ndcg") > 0 || difference(row, "recall") > 0);
  return other.sort((a, b) => difference(b, "ndcg") - difference(a, "ndcg") || difference(b, "recall") - difference(a, "recall")).slice(0, count);
}
