// What is said of files before they are loaded: how they are written, what their columns are, and how they are cut.

import { field, h, select } from "../dom.js";
import { KINDS } from "../facets.js";
import { t } from "../language.js";

export const LEFT_OUT = "out";
export const KEPT = "keep";

const ENCODINGS = ["utf-8", "cp949", "cp932", "euc-jp", "gb18030", "big5", "cp1252", "utf-16"];
const DELIMITERS = [",", ";", "\t", "|"];
const SHOWN = 60; // characters of a value

/** A select that tells of its new value. */
function choice(label, options, value, changed) {
  const control = select(options, value);
  control.addEventListener("change", () => changed(control.value));
  return field(label, control);
}

/** Pairs of a select, among which the one that was found is. */
function withFound(values, found) {
  return [...new Set([...values, found])].map((each) => [each, each === "\t" ? t("load.tab") : each]);
}

/**
 * Controls of how files are written and cut. found: options as a preview has them, null where there is none;
 * options: {encoding, delimiter, split}, empty for what is found. changed: told of the options that are others now.
 */
export function sourceControls(source, found, options, changed) {
  const splits = [["", t("load.whole")], ["markdown", t("load.atHeadings")], ["paragraphs", t("load.atParagraphs")], ["tokens", t("load.bySize")]];
  const encoding = options.encoding || found?.encoding;
  const delimiter = options.delimiter || found?.delimiter;
  return h(
    "div",
    { class: "fields" },
    encoding && choice(t("load.encoding"), withFound(ENCODINGS, encoding), encoding, (value) => changed({ encoding: value })),
    delimiter && choice(t("load.delimiter"), withFound(DELIMITERS, delimiter), delimiter, (value) => changed({ delimiter: value })),
    source.texts && choice(t("load.encoding"), [["", t("load.found")], ...withFound(ENCODINGS, "utf-8")], options.encoding, (value) => changed({ encoding: value })),
    choice(t("load.split"), splits, options.split, (split) => changed({ split })),
  );
}

/** Controls of which column is what. names: of all of them; columns: {text, title, id}. changed: told of new columns. */
export function columnControls(names, columns, changed) {
  const named = names.map((name) => [name, name]);
  const change = (part) => (value) => changed({ ...columns, [part]: value });
  return h(
    "div",
    { class: "fields" },
    choice(t("documents.text"), columns.text === "" ? [["", t("load.choose")], ...named] : named, columns.text, change("text")),
    choice(t("documents.documentTitle"), columns.title === "" ? [["", t("load.none")], ...named] : named, columns.title, change("title")),
    choice(t("documents.id"), [["", t("load.contentId")], ...named], columns.id, change("id")),
  );
}

/**
 * A table of the other columns, with what becomes of each. columns: [{name, samples}]; uses: by name; fields: those
 * that an existing collection declares, null for a new one. changed: told of the name and its new use.
 */
export function usesTable(columns, uses, fields, changed) {
  if (columns.length === 0) return null;
  const options = (name) => {
    const kept = fields?.[name] ? t("load.keptAs", { kind: fields[name] }) : t("load.kept");
    return [[LEFT_OUT, t("load.leftOut")], [KEPT, kept], ...(fields ? [] : KINDS.map((kind) => [kind, t("load.keptAs", { kind })]))];
  };
  const rows = columns.map(({ name, samples: [value = ""] }) => {
    const control = select(options(name), uses[name], { "aria-label": name });
    control.addEventListener("change", () => changed(name, control.value));
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    return h("tr", {}, h("th", { scope: "row", text: name }), h("td", { text: shown.length > SHOWN ? `${shown.slice(0, SHOWN)} …` : shown }), h("td", {}, control));
  });
  const headings = [t("load.column"), t("load.value"), t("load.use")];
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": t("load.others") },
    h("table", {}, h("thead", {}, h("tr", {}, headings.map((each) => h("th", { scope: "col", text: each })))), h("tbody", {}, rows)),
  );
}
