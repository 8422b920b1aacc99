// Records of JSON: an object a line, or the first array of objects in a file.

import { t } from "../language.js";
import { linesOf, MOST_CHARACTERS } from "./bytes.js";

/** A JSON value. Throws where it is none, or has a whole number that a browser would round. */
export function exactJson(text) {
  return JSON.parse(text, (_key, value, context) => {
    const rounded = Number.isInteger(value) && !Number.isSafeInteger(value);
    if (rounded && /^-?\d+$/.test(context?.source ?? "0")) throw new Error(t("load.roundedNumber", { number: context?.source ?? value }));
    return value;
  });
}

function parsed(text) {
  try {
    const record = exactJson(text);
    if (typeof record !== "object" || record === null || Array.isArray(record)) return { problem: t("load.noObject") };
    return { record };
  } catch (error) {
    return { problem: error.message };
  }
}

/** Records of an object a line. */
export async function* lineRecords(pieces) {
  for await (const { line, text } of linesOf(pieces)) if (text.trim() !== "") yield { line, ...parsed(text) };
}

/** Records of the first array of objects, by their number from 1. Throws where the file ends within it. */
export async function* arrayRecords(pieces) {
  let number = 0;
  for await (const text of elementsOf(pieces)) yield { line: (number += 1), ...parsed(text) };
}

/** The elements of the first array of objects, as text. */
async function* elementsOf(pieces) {
  let before = ""; // the last character outside of strings that is no blank
  let inside = false; // of the array
  let depth = 0; // within an element
  let string = false;
  let escaped = false;
  let kept = "";
  for await (const piece of pieces) {
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      const character = piece[at];
      if (string) {
        if (escaped) escaped = false;
        else if (character === "\\") escaped = true;
        else if (character === '"') string = false;
        continue;
      }
      if (character === '"') string = true;
      if (character <= " ") continue;
      if (!inside) {
        if (character === "{" && before === "[") [inside, depth, from, kept] = [true, 1, at, ""];
        before = character;
      } else if (depth === 0 && (character === "," || character === "]")) {
        const element = (kept + piece.slice(from, at)).trim();
        if (element !== "") yield element;
        if (character === "]") return;
        [from, kept] = [at + 1, ""];
      } else if (character === "{" || character === "[") depth += 1;
      else if (character === "}" || character === "]") depth -= 1;
    }
    if (inside) kept += piece.slice(from);
    if (kept.length > MOST_CHARACTERS) throw new Error(t("load.tooLong", { line: "…" }));
  }
  if (inside) throw new Error(t("load.endsEarly"));
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
    return false;
  }
}
