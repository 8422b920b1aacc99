// Which columns hold id, title, text and metadata, and the documents that come of records.

import { InputError } from "../errors.js";
import { isObject } from "../json.js";
import { t } from "../language.js";
import { contentId } from "./ids.js";

// As docs/sources.md has them: the first of these that is there, in any case.
const IDS = ["id", "_id", "doc_id", "docid", "pid", "번호"];
const TEXTS = [
  ...["text", "contents", "content", "body", "page_content", "passage", "document"],
  ...["본문", "내용", "正文", "内容", "內容", "本文"],
];
const TITLES = ["title", "name", "제목", "标题", "標題", "タイトル"];
const INTEGER = /^[+-]?\d{1,19}$/;
const BOOLEANS = { true: true, false: false, yes: true, no: false, 1: true, 0: false };

export const LEFT_OUT = "out";
export const KEPT = "keep";

/** The columns that seem meant: text is empty where none is, id is empty where ids are made of the content. */
export function guessedColumns(names) {
  const usual = (all) => {
    const lower = names.map((name) => name.normalize("NFC").toLowerCase());
    const found = all.find((each) => lower.includes(each));
    return names.includes(found) ? found : (names[lower.indexOf(found)] ?? "");
  };
  return { text: usual(TEXTS), title: usual(TITLES), id: usual(IDS) };
}

/**
 * Names of what records hold, in the order of the file: columns, and the entries of an object `metadata`.
 * Tables name theirs in `columns`, as objects have whole numbers first.
 */
export function namesOf(items) {
  const columns = new Set();
  const held = new Set();
  for (const { record, columns: named = [] } of items) {
    if (!record) continue;
    for (const name of named) columns.add(name);
    for (const name of Object.keys(record)) if (name !== "metadata") held.add(name);
    if (isObject(record.metadata)) for (const name of Object.keys(record.metadata)) held.add(name);
  }
  return [...new Set([...columns, ...held])].filter((name) => held.has(name));
}

/** What a field of this type holds of a cell of text; the text where it cannot hold it. */
export function cellValue(cell, kind) {
  const text = cell.trim();
  if (kind === "integer" && INTEGER.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  if (kind === "number" && text !== "" && Number.isFinite(Number(text))) return Number(text);
  if (kind === "boolean") return BOOLEANS[text.toLowerCase()] ?? cell;
  return kind === "datetime" ? text : cell;
}

/**
 * The document of a record. Throws where a part is missing or of another type.
 * columns: {text, title, id}, names, empty for none; uses: by name KEPT or LEFT_OUT or a type, which counts as KEPT;
 * fields: types by name, for cells, which are text.
 */
export function documentOf(record, columns, uses, fields, cells) {
  const text = record[columns.text];
  if (typeof text !== "string") throw new InputError(t("load.noText", { column: columns.text }));
  const title = columns.title === "" ? null : (record[columns.title] ?? null);
  if (title !== null && typeof title !== "string") throw new InputError(t("load.noTitle", { column: columns.title }));
  if (record.metadata != null && !isObject(record.metadata)) throw new InputError(t("load.badMetadata"));
  const own = [columns.text, columns.title, columns.id, "metadata"];
  const beside = Object.entries(record).filter(([name]) => !own.includes(name));
  const found = [...beside, ...Object.entries(record.metadata ?? {})].filter(([name, value]) => value !== null && uses[name] !== LEFT_OUT);
  const valued = found.map(([name, value]) => [name, cells && typeof value === "string" ? cellValue(value, fields[name]) : value]);
  const document = { text, title: title || null, metadata: Object.fromEntries(valued) };
  return { id: columns.id === "" ? contentId(document) : idOf(record, columns.id), ...document };
}

function idOf(record, column) {
  const id = record[column];
  if (typeof id === "string" && id !== "") return id;
  if (Number.isSafeInteger(id)) return String(id);
  throw new InputError(t("load.noId", { column }));
}
