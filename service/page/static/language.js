// The page's language: the one chosen here before, or the browser's.

const KEPT = "tercet-language";

export const LANGUAGES = [["en", "English"], ["ko", "한국어"]];

function preferred() {
  const kept = localStorage.getItem(KEPT);
  const known = LANGUAGES.map(([code]) => code);
  return [kept, ...navigator.languages.map((each) => each.slice(0, 2))].find((each) => known.includes(each)) ?? "en";
}

let language = preferred();
let strings = await textsOf(language);

/** All texts in a language, by name; only those of the language that is shown are loaded. */
async function textsOf(code) {
  return (await import(`./strings/${code}.js`)).STRINGS;
}

/** The language of now, such as "ko". */
export function currentLanguage() {
  return language;
}

/** Chooses a language, also for the next visit. */
export async function chooseLanguage(chosen) {
  strings = await textsOf(chosen);
  language = chosen;
  localStorage.setItem(KEPT, chosen);
}

/** The text of this name, with {words} filled in; of {word:one|many} what goes with its number. */
export function t(name, values = {}) {
  const filled = (whole, word, one, many) => (word in values ? (many === undefined ? String(values[word]) : String(values[word]) === "1" ? one : many) : whole);
  return (strings[name] ?? name).replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, filled);
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

/** Seconds in a unit that suits them. */
export function duration(seconds) {
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, size]) => seconds >= size) ?? ["second", 1];
  return Math.floor(seconds / size).toLocaleString(language, { style: "unit", unit, unitDisplay: "long" });
}

/** A moment, given as ISO 8601 or in milliseconds. */
export function moment(text) {
  return new Date(text).toLocaleString(language, { dateStyle: "medium", timeStyle: "medium" });
}
