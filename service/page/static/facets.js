// The commonest values of fields, with their counts.

import { api, collectionPath } from "./api.js";

export const KINDS = ["keyword", "integer", "number", "boolean", "datetime"]; // types of fields
export const COUNTED = ["keyword", "boolean"]; // those that have facets

/**
 * The facets of fields by name, over the documents that a filter allows; none of an empty collection.
 * A search brings them, whose query is a document, so that nothing is encoded.
 */
export async function facetsOf(collection, names, count, filter, signal) {
  if (names.length === 0) return {};
  const { documents } = await api("GET", collectionPath(collection, "documents"), { params: { limit: 1 }, signal });
  if (documents.length === 0) return {};
  const json = {
    collection,
    query: { id: documents[0].id },
    top_k: 1,
    weights: { dense: 1, sparse: 0, colbert: 0 },
    candidates: { dense: 1, sparse: 0 },
    include: [],
    filter,
    facets: Object.fromEntries(names.map((name) => [name, count])),
  };
  return (await api("POST", "/search", { json, signal })).facets ?? {};
}
