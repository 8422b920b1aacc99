// Ids that follow from what a document holds: those that `--generate-ids` of the command line makes.

import { blake2b } from "./blake2b.js";

const BYTES = 16;

/** The id of a document's content. */
export function contentId({ text, title, metadata }) {
  return blake2b(new TextEncoder().encode(pythonJson([text, title || null, metadata])), BYTES);
}

/** JSON as Python writes it with sorted keys: blanks after commas and colons, ASCII alone. */
function pythonJson(value) {
  if (typeof value === "string") return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (typeof value === "number") return pythonNumber(value);
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (value === null || typeof value !== "object") return String(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${pythonJson(name)}: ${pythonJson(value[name])}`).join(", ")}}`;
}

/** A number as Python writes it: exponents begin elsewhere, and have two digits. */
function pythonNumber(value) {
  if (Number.isSafeInteger(value)) return String(value);
  const [, digits, power] = value.toExponential().match(/^(-?[\d.]+)e([+-]\d+)$/);
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 16) return String(value);
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
