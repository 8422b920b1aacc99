// What is said of a source before it is loaded: where to, how it is written, and what its columns are.

import { field, h, select } from "../dom.js";
import { KINDS } from "../fields.js";
import { t } from "../language.js";
import { ENCODINGS } from "./bytes.js";
import { KEPT, LEFT_OUT } from "./columns.js";
import { DELIMITERS } from "./tables.js";

const SHOWN = 60; // characters of a value

/** A select that tells of its new value. */
function choice(label, options, value, changed) {
  const control = select(options, value);
  control.addEventListener("change", () => changed(control.value));
  return field(label, control);
}

/** Controls of how the files are written. changed: told of the options that are others now. */
export function sourceControls(source, changed) {
  const { options } = source;
  const controls = [choice(t("load.encoding"), ENCODINGS.map((each) => [each, each === "euc-kr" ? "euc-kr (cp949)" : each]), options.encoding, (encoding) => changed({ encoding }))];
  if (source.cells) {
    const delimiters = [...new Set([...DELIMITERS, options.delimiter])].map((each) => [each, each === "\t" ? t("load.tab") : each]);
    controls.push(choice(t("load.delimiter"), delimiters, options.delimiter, (delimiter) => changed({ delimiter })));
  }
  const split = h("input", { type: "checkbox", checked: options.split, on: { change: () => changed({ split: split.checked }) } });
  return h("div", { class: "stack" }, h("div", { class: "fields" }, controls), source.markdown && h("label", { class: "check" }, split, t("load.split")));
}

/** Controls of which column is what. names: of all of them; columns: {text, title, id}. changed: told of new columns. */
export function columnControls(names, columns, changed) {
  const named = names.map((name) => [name, name]);
  const change = (part) => (value) => changed({ ...columns, [part]: value });
  return h(
    "div",
    { class: "fields" },
    choice(t("documents.text"), columns.text === "" ? [["", t("load.choose")], ...named] : named, columns.text, change("text")),
    choice(t("documents.documentTitle"), [["", t("load.none")], ...named], columns.title, change("title")),
    choice(t("documents.id"), [["", t("load.contentId")], ...named], columns.id, change("id")),
  );
}

/**
 * A table of the other columns, with what becomes of each. values: a value of each by name; fields: those that an
 * existing collection declares, null for a new one. changed: told of the name and its new use.
 */
export function usesTable(names, values, uses, fields, changed) {
  if (names.length === 0) return null;
  const options = (name) => {
    const kept = fields?.[name] ? t("load.keptAs", { kind: fields[name] }) : t("load.kept");
    return [[LEFT_OUT, t("load.leftOut")], [KEPT, kept], ...(fields ? [] : KINDS.map((kind) => [kind, t("load.keptAs", { kind })]))];
  };
  const rows = names.map((name) => {
    const control = select(options(name), uses[name], { "aria-label": name });
    control.addEventListener("change", () => changed(name, control.value));
    const shown = typeof values[name] === "string" ? values[name] : JSON.stringify(values[name] ?? null);
    return h("tr", {}, h("th", { scope: "row", text: name }), h("td", { text: shown.length > SHOWN ? `${shown.slice(0, SHOWN)} …` : shown }), h("td", {}, control));
  });
  const headings = [t("load.column"), t("load.value"), t("load.use")];
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": t("load.others") },
    h("table", {}, h("thead", {}, h("tr", {}, headings.map((each) => h("th", { scope: "col", text: each })))), h("tbody", {}, rows)),
  );
}
