// The address of what is shown, after the #: a view and what it shows, to be kept or sent to others.

/** The view and its values. */
export function readAddress() {
  const [, view, query] = location.hash.match(/^#\/?([^?]*)\??(.*)$/s) ?? [null, "", ""];
  return { view: view || "search", values: new URLSearchParams(query) };
}

/** The address of a view; values that are empty or null are left out. */
export function addressOf(view, values = {}) {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/** Puts the address of what is shown into the browser's line, without a new entry in its history. */
export function writeAddress(view, values) {
  history.replaceState(null, "", addressOf(view, values));
}

/** Goes to a view. */
export function go(view, values) {
  location.hash = addressOf(view, values);
}
