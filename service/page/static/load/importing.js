// Files on their way to the server, and what it makes of them.

import { api, apiLines, collectionPath } from "../api.js";

const TYPE = "application/octet-stream"; // what a browser takes it for says less than its name

/** What an import would read: columns, options, the first documents, and what is wrong with others. parameters: [name, value] pairs. */
export async function preview(collection, source, parameters, signal) {
  const params = [["filename", source.files[0].name], ["dry_run", "true"], ...parameters];
  return api("POST", collectionPath(collection, "import"), { body: new Blob([await source.sample()], { type: TYPE }), params, signal });
}

/** Imports a file; yields how far it is after each group of documents. Bad records are left out. */
export function imported(collection, { name, file }, parameters, signal) {
  const params = [["filename", name], ["on_error", "skip"], ...parameters];
  return apiLines(collectionPath(collection, "import"), { body: new Blob([file], { type: TYPE }), params, signal });
}
