// Filters from the fields that a collection declares. Their state is {field: {eq: [...]} or {gte, lte}}.

import { ApiError } from "./api.js";
import { field as labelled, h, replace } from "./dom.js";
import { COUNTED, facetsOf } from "./facets.js";
import { isObject } from "./json.js";
import { number, t } from "./language.js";

const SHOWN = 8; // values of a field

/** The server's filter of a state, null where nothing is filtered. */
export function filterOf(state) {
  const parts = [];
  for (const [name, wanted] of Object.entries(state)) {
    if (wanted.eq?.length === 1) parts.push({ eq: { [name]: wanted.eq[0] } });
    else if (wanted.eq?.length) parts.push({ in: { [name]: wanted.eq } });
    for (const side of ["gte", "lte"]) if (wanted[side] !== undefined) parts.push({ [side]: { [name]: wanted[side] } });
  }
  return parts.length === 0 ? null : parts.length === 1 ? parts[0] : { and: parts };
}

/** The state as in an address; empty for none. */
export function filterText(state) {
  return filterOf(state) === null ? "" : JSON.stringify(state);
}

/** The state of such a text, for the fields there are. */
export function filterState(text, fields) {
  let given;
  try {
    given = JSON.parse(text || "{}");
  } catch {
    return {};
  }
  if (typeof given !== "object" || given === null) return {};
  const usable = (wanted) => isObject(wanted) && Array.isArray(wanted.eq ?? []);
  return Object.fromEntries(Object.entries(given).filter(([name, wanted]) => name in fields && usable(wanted)));
}

/** A moment as the browser's own control takes it, in the zone of who looks at it. */
function localMoment(text) {
  const moment = new Date(text ?? NaN);
  if (Number.isNaN(moment.getTime())) return "";
  return new Date(moment.getTime() - 60_000 * moment.getTimezoneOffset()).toISOString().slice(0, 19);
}

/** Controls of a collection's fields: values with their counts, or bounds. */
export class Filters {
  /** fields: types by name. changed: called with each new state. signal: ends the requests. */
  constructor(collection, fields, state, changed, signal) {
    Object.assign(this, { _collection: collection, _fields: fields, _state: state, _changed: changed, _signal: signal });
    this._lists = new Map();
    this._facets = null; // until they are known
    const rows = Object.entries(fields).map(([name, kind]) => {
      if (!COUNTED.includes(kind)) return this._bounds(name, kind);
      this._lists.set(name, h("fieldset", { class: "values" }));
      this._drawValues(name);
      return this._lists.get(name);
    });
    this.element = h("div", { class: "filters" }, rows.length ? rows : h("p", { class: "hint", text: t("filters.none") }));
    this._count();
  }

  _set(name, wanted) {
    const kept = Object.entries(wanted).filter(([, value]) => value !== undefined && value.length !== 0);
    const { [name]: _, ...others } = this._state;
    this._state = kept.length ? { ...others, [name]: Object.fromEntries(kept) } : others;
    if (this._lists.has(name)) this._drawValues(name);
    this._changed(this._state);
    this._count();
  }

  /** Counts the values of each field among the documents that the filters of the others allow. */
  async _count() {
    const state = this._state;
    const names = [...this._lists.keys()];
    const together = names.filter((name) => !(name in state));
    const groups = [together, ...names.filter((name) => name in state).map((name) => [name])];
    try {
      const found = await Promise.all(
        groups.map((group) => {
          const others = Object.fromEntries(Object.entries(state).filter(([name]) => !group.includes(name)));
          return facetsOf(this._collection, group, SHOWN, filterOf(others), this._signal);
        }),
      );
      if (state !== this._state) return;
      this._facets = Object.assign({}, ...found);
      for (const name of names) this._drawValues(name);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof ApiError)) throw error; // of others the search says what is wrong
      this._facets ??= {};
      for (const name of names) this._drawValues(name);
    }
  }

  /** Draws the values of a field, those that are wanted among them; what has the focus keeps it. */
  _drawValues(name) {
    const place = this._lists.get(name);
    const facet = this._facets?.[name];
    const boolean = this._fields[name] === "boolean";
    const wanted = this._state[name]?.eq ?? [];
    const counts = new Map((facet?.values ?? []).map(({ value, count }) => [value, count]));
    const values = [...new Set([...counts.keys(), ...(boolean ? [true, false] : []), ...wanted])];
    const label = (value) => (boolean ? t(value ? "filters.true" : "filters.false") : value);
    const focused = [...place.querySelectorAll("input")].indexOf(document.activeElement);
    const rows = values.map((value) => {
      const box = h("input", { type: "checkbox", checked: wanted.includes(value) });
      box.addEventListener("change", () => {
        const now = this._state[name]?.eq ?? [];
        this._set(name, { eq: box.checked ? [...now, value] : now.filter((each) => each !== value) });
      });
      return h("label", { class: "check" }, box, h("span", { class: "title", text: label(value) }), counts.has(value) && h("span", { class: "hint", text: number(counts.get(value)) }));
    });
    const others = !boolean && this._facets !== null && (facet === undefined || facet.distinct > facet.values.length);
    const more = h("input", { placeholder: t("filters.other"), "aria-label": t("filters.otherOf", { field: name }) });
    more.addEventListener("change", () => more.value.trim() && this._set(name, { eq: [...new Set([...(this._state[name]?.eq ?? []), more.value.trim()])] }));
    replace(place, h("legend", { text: name }), rows, others && more);
    place.querySelectorAll("input")[focused]?.focus();
  }

  _bounds(name, kind) {
    const moments = kind === "datetime";
    const bound = (side) => {
      const value = this._state[name]?.[side];
      const attributes = moments ? { type: "datetime-local", step: 1, value: localMoment(value) } : { type: "number", step: kind === "integer" ? 1 : "any", value: value ?? "" };
      const control = h("input", attributes);
      control.addEventListener("change", () => {
        const entered = control.value === "" ? undefined : moments ? new Date(control.value).toISOString() : control.valueAsNumber;
        this._set(name, { ...this._state[name], [side]: Number.isNaN(entered) ? undefined : entered });
      });
      return control;
    };
    return h("div", { class: moments ? "range moments" : "range" }, labelled(t("filters.from", { field: name }), bound("gte")), labelled(t("filters.to", { field: name }), bound("lte")));
  }
}
