// What went wrong, in words: whose doing it is, and what can be done about it.

import { ApiError } from "./api.js";
import { t } from "./language.js";

const INPUT = [400, 413, 422]; // statuses that tell of what was asked for
const TITLES = { 0: "error.gone", 401: "error.key", 403: "error.forbidden", 404: "error.missing", 409: "error.conflict", 429: "error.busy", 503: "error.notReady", 507: "error.full" };

/** What somebody entered, or a file of theirs, cannot be used; its message says why. */
export class InputError extends Error {}

/** A title and a text, in the language of the page, and the seconds to wait where the server named them. */
export function explained(error) {
  if (error instanceof InputError) return { title: t("error.input"), text: error.message };
  if (!(error instanceof ApiError)) return { title: t("error.page"), text: String(error.message ?? error) };
  const other = INPUT.includes(error.status) ? "error.input" : error.status < 500 ? "error.refused" : "error.server";
  const text = error.status === 0 ? t("error.goneText") : error.message;
  return { title: t(TITLES[error.status] ?? other), text, retryAfter: error.retryAfter };
}
