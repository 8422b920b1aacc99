// Filters from the fields that a collection declares. Their state is {field: {eq: [...]} or {gte, lte}}.

import { field as labelled, h, select } from "./dom.js";
import { isObject } from "./json.js";
import { t } from "./language.js";

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

/** Controls for each field. changed: called with the new state. */
export function filterControls(fields, state, changed) {
  const set = (name, wanted) => {
    const next = { ...state, [name]: wanted };
    for (const key of Object.keys(wanted)) if (wanted[key] === undefined || wanted[key].length === 0) delete wanted[key];
    if (Object.keys(wanted).length === 0) delete next[name];
    state = next;
    changed(next);
  };
  const rows = Object.entries(fields).map(([name, kind]) => {
    const wanted = state[name] ?? {};
    if (kind === "boolean") {
      const control = select([["", t("filters.any")], ["true", t("filters.true")], ["false", t("filters.false")]], String(wanted.eq?.[0] ?? ""));
      control.addEventListener("change", () => set(name, { eq: control.value === "" ? [] : [control.value === "true"] }));
      return labelled(name, control);
    }
    if (kind === "keyword") {
      const control = h("input", { value: (wanted.eq ?? []).join(", "), placeholder: t("filters.any"), title: t("filters.values") });
      control.addEventListener("change", () => set(name, { eq: control.value.split(",").map((each) => each.trim()).filter(Boolean) }));
      return labelled(name, control);
    }
    const bound = (side) => {
      const moments = kind === "datetime";
      const attributes = moments ? { type: "datetime-local", step: 1, value: localMoment(wanted[side]) } : { type: "number", step: kind === "integer" ? 1 : "any", value: wanted[side] ?? "" };
      const control = h("input", attributes);
      control.addEventListener("change", () => {
        const value = control.value === "" ? undefined : moments ? new Date(control.value).toISOString() : control.valueAsNumber;
        set(name, { ...state[name], [side]: Number.isNaN(value) ? undefined : value });
      });
      return control;
    };
    return h("div", { class: "range" }, labelled(t("filters.from", { field: name }), bound("gte")), labelled(t("filters.to", { field: name }), bound("lte")));
  });
  return h("div", { class: "filters" }, rows.length ? rows : h("p", { class: "hint", text: t("filters.none") }));
}
