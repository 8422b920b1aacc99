// Types of a new collection's fields, found in the first records.

const SHORT_CHARACTERS = 32; // on average, of texts that may be keywords
const NUMBER = /^[+-]?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d{1,3})?$/i; // 007 stays text, as postal codes
const MOMENT = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?(\d\d)?)?)?$/;

/** The type of values of one name, null where they fit none. cells: whether they are text of a table. */
export function kindOf(values, cells) {
  const flat = values.flat().filter((each) => each !== null && each !== undefined);
  const kinds = new Set(flat.map((each) => kindOfOne(each, cells)));
  if (kinds.size === 2 && kinds.has("integer") && kinds.has("number")) return "number";
  if (kinds.size !== 1) return [...kinds].every((each) => each !== null) && cells ? keyword(flat) : null;
  const [kind] = kinds;
  return kind === "keyword" ? keyword(flat) : kind;
}

function kindOfOne(value, cells) {
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  if (typeof value !== "string") return null;
  if (MOMENT.test(value.trim())) return "datetime";
  if (!cells) return "keyword";
  if (/^(true|false)$/i.test(value.trim())) return "boolean";
  if (!NUMBER.test(value.trim())) return "keyword";
  return /^[+-]?\d+$/.test(value.trim()) ? "integer" : "number";
}

function keyword(values) {
  const characters = values.reduce((sum, each) => sum + String(each).length, 0);
  return characters <= SHORT_CHARACTERS * values.length ? "keyword" : null;
}
