// Records of JSON: an object a line, or the first array of objects in a file.

import { InputError } from "../errors.js";
import { isObject, jsonOf } from "../json.js";
import { t } from "../language.js";
import { linesOf, MOST_CHARACTERS } from "./bytes.js";

/** Throws at a whole number that a browser would round. */
function exact(_key, value, context) {
  const rounded = Number.isInteger(value) && !Number.isSafeInteger(value);
  if (rounded && /^-?\d+$/.test(context?.source ?? "0")) throw new InputError(t("load.roundedNumber", { number: context?.source ?? value }));
  return value;
}

function parsed(text, line) {
  try {
    const record = jsonOf(text, line, exact);
    return isObject(record) ? { record } : { problem: t("load.noObject") };
  } catch (error) {
    return { problem: error.message };
  }
}

/** Records of an object a line. */
export async function* lineRecords(pieces) {
  for await (const { line, text } of linesOf(pieces)) if (text.trim() !== "") yield { line, ...parsed(text, line) };
}

/** Records of the first array of objects, with their number from 1. Throws where the file ends within it. */
export async function* arrayRecords(pieces) {
  let number = 0;
  for await (const { line, text } of elementsOf(pieces)) yield { number: (number += 1), ...parsed(text, line) };
}

/** The elements of the first array of objects, as text, with the lines at which that begins. */
async function* elementsOf(pieces) {
  let before = ""; // the last character outside of strings that is no blank
  let inside = false; // of the array
  let depth = 0; // within an element
  let string = false;
  let escaped = false;
  let kept = "";
  let line = 1;
  let began = 1; // the line of what is kept
  for await (const piece of pieces) {
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      const character = piece[at];
      if (character === "\n") line += 1;
      if (string) {
        if (escaped) escaped = false;
        else if (character === "\\") escaped = true;
        else if (character === '"') string = false;
        continue;
      }
      if (character === '"') string = true;
      if (character <= " ") continue;
      if (!inside) {
        if (character === "{" && before === "[") [inside, depth, from, kept, began] = [true, 1, at, "", line];
        before = character;
      } else if (depth === 0 && (character === "," || character === "]")) {
        const text = kept + piece.slice(from, at);
        if (text.trim() !== "") yield { line: began, text };
        if (character === "]") return;
        [from, kept, began] = [at + 1, "", line];
      } else if (character === "{" || character === "[") depth += 1;
      else if (character === "}" || character === "]") depth -= 1;
    }
    if (inside) kept += piece.slice(from);
    if (kept.length > MOST_CHARACTERS) throw new InputError(t("load.tooLong", { line: began }));
  }
  if (inside) throw new InputError(t("load.endsEarly"));
}

/** Whether a file that begins so holds an object a line, and no array. */
export function isLines(beginning) {
  const trimmed = beginning.trimStart();
  if (!trimmed.startsWith("{")) return false;
  const [first, ...others] = trimmed.split("\n");
  try {
    const record = JSON.parse(first);
    const holds = Object.values(record).some((each) => Array.isArray(each) && typeof each[0] === "object");
    return !holds || others.some((each) => each.trim() !== "");
  } catch {
    return first.trimEnd().endsWith("}"); // as a record that holds NaN does
  }
}
