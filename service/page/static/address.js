// The address of what is shown, after the #: a view and what it shows, to be kept or sent to others.

let shown = ""; // the address of the view that is shown, after the #

/** The view and its values, which are shown from now on. */
export function readAddress() {
  shown = location.hash;
  const [, view, query] = location.hash.match(/^#\/?([^?]*)\??(.*)$/s) ?? [null, "", ""];
  return { view: view || "search", values: new URLSearchParams(query) };
}

/** The address of a view; values that are empty or null are left out. */
export function addressOf(view, values = {}) {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/**
 * Puts the address of what is shown into the browser's line, without a new entry in its history.
 * Where the line has another already, that one's view is about to be shown, and its address stays.
 */
export function writeAddress(view, values) {
  if (location.hash !== shown) return;
  history.replaceState(null, "", addressOf(view, values));
  shown = location.hash;
}

/** Goes to a view. */
export function go(view, values) {
  location.hash = addressOf(view, values);
}
