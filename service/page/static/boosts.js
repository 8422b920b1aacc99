// Points for what the fields of a document say: rows that are edited, and the `boosts` of a search that they make.

import { button, field as labelled, h, replace, select } from "./dom.js";
import { t } from "./language.js";

const NEAR = ["datetime", "integer", "number"]; // types that have a distance
const DECAYS = ["exp", "gauss", "linear"];

/** The server's boosts of rows; rows that are not filled in are none. */
export function boostsOf(rows, fields) {
  return rows.map((row) => boostOf(row, fields[row.field])).filter(Boolean);
}

function boostOf({ field, value, decay, origin, scale, add }, kind) {
  if (!kind || !Number.isFinite(add)) return null;
  const typed = (text) => (kind === "integer" || kind === "number" ? Number(text) : text.trim());
  if (decay === undefined) return value.trim() === "" ? null : { filter: { eq: { [field]: kind === "boolean" ? value.trim() === "true" : typed(value) } }, add };
  if (origin.trim() === "" || scale.trim() === "") return null;
  return { field, decay, origin: typed(origin), scale: typed(scale), add };
}

/** Rows as in an address; empty for none. */
export function boostsText(rows) {
  return rows.length ? JSON.stringify(rows) : "";
}

/** The rows of such a text. */
export function boostRows(text) {
  try {
    const rows = JSON.parse(text || "[]");
    const texts = ["field", "value", "decay", "origin", "scale"];
    return Array.isArray(rows) ? rows.filter((row) => typeof row?.add === "number" && texts.every((name) => ["string", "undefined"].includes(typeof row[name])) && (row.decay ? row.origin !== undefined && row.scale !== undefined : row.value !== undefined)) : [];
  } catch {
    return [];
  }
}

/** An editor of rows. fields: types by name, at least one. changed: called with all of them. */
export function boostsEditor(fields, rows, changed) {
  const place = h("div", { class: "boosts" });
  const names = Object.keys(fields);
  const near = names.filter((name) => NEAR.includes(fields[name]));
  const set = (at, values) => {
    rows = rows.map((row, place) => (place === at ? { ...row, ...values } : row));
    changed(rows);
  };
  const put = (others) => {
    rows = others;
    draw();
  };
  const draw = () => {
    const today = new Date().toISOString().slice(0, 10);
    replace(
      place,
      rows.map((row, at) => rowElement(row, fields, row.decay ? near : names, (values) => set(at, values), () => (put(rows.filter((_, place) => place !== at)), changed(rows)))),
      h(
        "div",
        { class: "row" },
        button(t("boosts.addValue"), () => put([...rows, { field: names[0], value: "", add: 0.1 }]), { class: "quiet" }),
        near.length ? button(t("boosts.addNear"), () => put([...rows, { field: near[0], decay: "exp", origin: fields[near[0]] === "datetime" ? today : "", scale: fields[near[0]] === "datetime" ? "30d" : "", add: 0.1 }]), { class: "quiet" }) : null,
      ),
    );
  };
  draw();
  return place;
}

function rowElement(row, fields, names, set, remove) {
  const control = (label, name, hint = null) => {
    const input = h("input", { value: row[name], spellcheck: "false", on: { change: () => set({ [name]: input.value }) } });
    return labelled(label, input, hint);
  };
  const field = select(names.map((name) => [name, name]), row.field);
  field.addEventListener("change", () => set({ field: field.value }));
  const add = h("input", { type: "number", step: "any", value: row.add, on: { change: () => set({ add: add.valueAsNumber }) } });
  const parts = [labelled(t("boosts.field"), field)];
  if (row.decay === undefined) parts.push(control(t("boosts.value"), "value"));
  else {
    const decay = select(DECAYS.map((each) => [each, each]), row.decay);
    decay.addEventListener("change", () => set({ decay: decay.value }));
    const moment = fields[row.field] === "datetime";
    parts.push(labelled(t("boosts.decay"), decay), control(t("boosts.origin"), "origin"), control(t("boosts.scale"), "scale", moment ? t("boosts.scaleHint") : null));
  }
  return h("fieldset", { class: "boost" }, h("legend", { text: t(row.decay ? "boosts.addNear" : "boosts.addValue") }), h("div", { class: "fields" }, parts, labelled(t("boosts.points"), add)), button(t("remove"), remove, { class: "quiet" }));
}
