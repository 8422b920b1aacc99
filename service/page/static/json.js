// JSON that people give: its value, or where it is none and what may stand there.

import { InputError } from "./errors.js";
import { t } from "./language.js";

const TOKEN = /[^\s{}[\],:"]+/y;
const VALUE = /^(true|false|null|-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?)$/i;
const SHOWN = 20; // characters of what is no JSON

/** The value of a text. Throws InputError where it is no JSON. */
export function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new InputError(whyNone(text)); // browsers say it in their own words, in English
  }
}

/** Whether a value of JSON is an object. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function whyNone(text) {
  const found = foreignToken(text);
  if (found === null) return t("json.broken", { line: text.match(/^\s*/)[0].split("\n").length });
  const lines = text.slice(0, found.at).split("\n");
  const token = found.token.length > SHOWN ? `${found.token.slice(0, SHOWN)}…` : found.token;
  return t("json.token", { line: lines.length, column: lines.at(-1).length + 1, token });
}

/** What stands outside of strings first and is no value of JSON, as NaN is; null where nothing is. */
function foreignToken(text) {
  let string = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (string && character === "\\") at += 1;
    else if (character === '"') string = !string;
    else if (!string) {
      TOKEN.lastIndex = at;
      const [token] = TOKEN.exec(text) ?? [""];
      if (token !== "" && !VALUE.test(token)) return { at, token };
      at += Math.max(0, token.length - 1);
    }
  }
  return null;
}
