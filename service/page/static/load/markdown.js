// Markdown as records: its headings, and its sections with their links.

import { parted } from "./front_matter.js";

const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const NO_PARAGRAPH = /^(?: {4}|\t| {0,3}(?:[>#|]|[-*+] |\d+[.)] ))/;
const NAMED = /\s*\{:?\s*#([^\s}]+)[^}]*\}\s*$/; // as of Pandoc
const BETWEEN = " › ";
const MOST_SLUG_CHARACTERS = 100;

/** The words of a heading, without what marks them. */
function plain(source) {
  return source
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/`+|\*+|(?<![\p{L}\p{N}_])_+|_+(?![\p{L}\p{N}_])/gu, "")
    .replace(/\\([!-/:-@[-`{-~])/g, "$1")
    .split(/\s+/)
    .filter(Boolean)
    .join(" ");
}

/** Names of headings as GitHub makes them for links. */
function slugs() {
  const used = new Map();
  const distinct = (name) => {
    let found = name;
    while (used.has(found)) {
      used.set(name, used.get(name) + 1);
      found = `${name}-${used.get(name)}`;
    }
    used.set(found, 0);
    return found;
  };
  const of = (title) => {
    const slug = Array.from(title.toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "").replaceAll(" ", "-"));
    return slug.some((each) => each !== "-") ? distinct(slug.slice(0, MOST_SLUG_CHARACTERS).join("")) : "";
  };
  return { of, distinct };
}

/** Sections in order, as {path: [{level, title, anchor}], text}; the first one is above all headings. */
export function sectionsOf(text) {
  const names = slugs();
  const sections = [{ path: [], lines: [] }];
  let fence = null;
  let paragraph = false; // whether the line before may be underlined
  const begin = (level, source) => {
    const named = source.match(NAMED);
    const title = plain(named ? source.slice(0, named.index) : source);
    const anchor = named ? names.distinct(named[1]) : names.of(title);
    const path = sections.at(-1).path.filter((each) => each.level < level);
    if (title) sections.push({ path: [...path, { level, title, anchor }], lines: [] });
  };
  for (const line of text.split(/\r\n|\r|\n/)) {
    const { lines } = sections.at(-1);
    const mark = line.match(FENCE)?.[1];
    const heading = fence === null && line.match(HEADING);
    const under = fence === null && paragraph && line.match(UNDERLINE);
    if (fence !== null) {
      if (mark?.[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = null;
      lines.push(line);
      paragraph = false;
    } else if (heading) {
      begin(heading[1].length, heading[2] ?? "");
      paragraph = false;
    } else if (under) {
      begin(under[1][0] === "=" ? 1 : 2, lines.pop().trim());
      paragraph = false;
    } else {
      if (mark) fence = mark;
      lines.push(line);
      paragraph = line.trim() !== "" && !mark && !NO_PARAGRAPH.test(line);
    }
  }
  return sections.map(({ path, lines }) => ({ path, text: lines.join("\n").trim() }));
}

/** The records of a file of text. markdown: whether it has headings; split: a record for each of its sections. */
export function textRecords(name, whole, { markdown, split }) {
  const { values, text } = markdown ? parted(whole) : { values: {}, text: whole };
  const sections = markdown ? sectionsOf(text) : [{ path: [], text }];
  const { title: given, ...others } = values;
  const heading = sections.find((each) => each.path.length)?.path.at(-1).title;
  const title = (Array.isArray(given) ? "" : String(given ?? "").trim()) || (heading ?? name.split("/").at(-1));
  if (!split || !markdown) return text.trim() === "" ? [] : [{ id: name, title, text: text.trim(), ...others, source: name }];
  let first = 0;
  return sections
    .filter((each) => each.text !== "")
    .map(({ path, text: own }) => {
      const headings = path.map((each) => each.title);
      const anchor = path.at(-1)?.anchor || null;
      const shown = [title, ...(headings[0] === title ? headings.slice(1) : headings)].join(BETWEEN);
      return { id: `${name}#${anchor ?? (first += 1)}`, title: shown, text: own, ...others, source: name, ...(headings.length ? { headings } : {}), ...(anchor ? { anchor } : {}) };
    });
}
