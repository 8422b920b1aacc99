// The page's language: the one chosen here before, or the browser's.

import { STRINGS } from "./strings.js";

const KEPT = "tercet-language";

export const LANGUAGES = [["en", "English"], ["ko", "한국어"]];

function preferred() {
  const kept = localStorage.getItem(KEPT);
  if (kept in STRINGS) return kept;
  return navigator.languages.map((each) => each.slice(0, 2)).find((each) => each in STRINGS) ?? "en";
}

let language = preferred();

/** The language of now, such as "ko". */
export function currentLanguage() {
  return language;
}

/** Chooses a language, also for the next visit. */
export function chooseLanguage(chosen) {
  language = chosen;
  localStorage.setItem(KEPT, chosen);
}

/** The text of this name, with {words} filled in. */
export function t(name, values = {}) {
  const text = STRINGS[language][name] ?? STRINGS.en[name] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, word) => (word in values ? String(values[word]) : whole));
}

/** A number as people of this language write it. */
export function number(value, digits = 0) {
  return value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Bytes in a unit that suits them. */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return `${number(value / 1000 ** step, step ? 1 : 0)} ${units[step]}`;
}

/** A moment, given as ISO 8601. */
export function moment(text) {
  return new Date(text).toLocaleString(language, { dateStyle: "medium", timeStyle: "medium" });
}
