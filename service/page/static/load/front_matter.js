// What stands before a Markdown text between lines of `---`: the YAML 1.1 that static-site generators write there.

const FRONT_MATTER = /^---[ \t]*\r?\n([\s\S]*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/m;
const FIRST_KEY = /^(?:[ \t]*(?:#.*)?\r?\n)*[\p{L}\p{N}_"'][^\n]*?:(?:\s|$)/u;
const KEY = /^(?:"([^"\\]+)"|'([^']+)'|([\p{L}\p{N}_][^#"']*?))[ \t]*:(?:[ \t]+(.*))?$/u;
const COMMENT = /(?:^|[ \t])#.*$/;
const DOUBLE = /^"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?$/s;
const SINGLE = /^'((?:[^']|'')*)'[ \t]*(?:#.*)?$/s;
const PAIR = /^[^"'[{].*?:(?:[ \t]|$)|^(?:"[^"]*"|'[^']*')[ \t]*:(?:[ \t]|$)/;
const NO_PLAIN = /^(?:[|>&*!%@`{}[\],#"']|[-?:](?:[ \t]|$))/;
const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gs;
const ESCAPED = { 0: "\0", a: "\x07", b: "\b", t: "\t", n: "\n", v: "\v", f: "\f", r: "\r", e: "\x1b", N: "\x85", _: "\xa0", L: "\u2028", P: "\u2029" };
const MOMENT = /^(\d{4})-(\d\d?)-(\d\d?)(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?(?:[ \t]*(?:Z|([-+])(\d\d?)(?::(\d\d))?))?$/;

/** The values before a text, texts, numbers, booleans and lists of these by their names, and the text below them. */
export function parted(text) {
  const found = text.startsWith("---") ? text.match(FRONT_MATTER) : null;
  if (found === null || found.index !== 0 || !FIRST_KEY.test(found[1])) return { values: {}, text };
  const values = new Map(entriesOf(found[1].replace(/\r?\n$/, "").split(/\r?\n/)).map(({ name, first, more }) => [name, valueOf(first, more)]));
  return { values: Object.fromEntries([...values].filter(([, value]) => value !== null)), text: text.slice(found[0].length) };
}

/** Names with what follows them on their line, and the lines below that are theirs. */
function entriesOf(lines) {
  const entries = [];
  for (const line of lines) {
    const key = line.match(KEY);
    if (key) entries.push({ name: key[1] ?? key[2] ?? key[3], first: key[4] ?? "", more: [] });
    else entries.at(-1)?.more.push(line);
  }
  return entries;
}

/** The value of a name; null where it has none, or one that is not kept. */
function valueOf(first, more) {
  const block = first.match(/^([|>])([-+]?)[ \t]*(?:#.*)?$/);
  if (block) return blockOf(block[1], block[2], more);
  const begun = first.replace(/^#.*/, "");
  const below = more.filter((line) => !/^[ \t]*(?:#.*)?$/.test(line));
  if (begun === "" && /^[ \t]*-(?:[ \t]|$)/.test(below[0] ?? "")) return itemsOf(below);
  if (begun === "" && PAIR.test(below[0]?.trim() ?? "")) return null;
  const own = [begun, ...below].map((line) => line.trim()).filter(Boolean);
  return own[0]?.startsWith("[") ? listOf(own) : scalarOf(folded([begun, ...more]));
}

/** A list of lines that each begin with a hyphen. */
function itemsOf(lines) {
  const hyphens = lines[0].search(/-/);
  const items = [];
  for (const line of lines) {
    if (line.search(/\S/) === hyphens && /^[ \t]*-(?:[ \t]|$)/.test(line)) items.push([line.trim().slice(1).trim()]);
    else items.at(-1).push(line);
  }
  return kept(items.map((item) => (isNested(item[0]) || /^-[ \t]/.test(item[0]) || (item[0] === "" && item.length > 1) ? null : scalarOf(folded(item)))));
}

/** A list within brackets, of which lists and objects are left out. */
function listOf(lines) {
  const text = lines.map((line) => (/["']/.test(line) ? line : line.replace(COMMENT, ""))).join(" ");
  const items = [""];
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[\s\S]/g)) {
    if ("[{".includes(token)) depth += 1;
    if ("]}".includes(token)) depth -= 1;
    if (depth === 0) return kept(items.map((item) => item.trim()).map((item) => (isNested(item) ? null : scalarOf(item))));
    if (token === "," && depth === 1) items.push("");
    else if (depth > 1 || token !== "[" || items.length > 1 || items[0] !== "") items[items.length - 1] += token;
  }
  return null;
}

const isNested = (text) => /^[[{]/.test(text) || PAIR.test(text);
const kept = (values) => values.filter((value) => value !== null);

/** Lines of text after `|`, or after `>`, where those of one paragraph are one. */
function blockOf(style, end, more) {
  const indent = more.find((line) => line.trim() !== "")?.search(/\S/) ?? 0;
  if (indent === 0) return "";
  const text = more.map((line) => line.slice(indent)).join("\n");
  const body = text.replace(/\n*$/, "");
  const ending = end === "-" ? "" : end === "+" ? `${text.slice(body.length)}\n` : "\n";
  if (style === "|") return body + ending;
  const parts = body.split(/(\n+)/); // lines, and the breaks between them: those at lines further in stay
  const isWide = (place) => /^[ \t]/.test(parts[place]);
  return parts.map((part, place) => (place % 2 === 0 || isWide(place - 1) || isWide(place + 1) ? part : part.slice(1) || " ")).join("") + ending;
}

/** Lines of one value as YAML joins them: by blanks, and by line breaks for empty lines. */
function folded(lines) {
  const text = lines.map((line) => line.trim()).join("\n").trim();
  return text.replace(/\n(\n*)/g, (_, blank) => blank || " ");
}

/** A quoted or plain value; null for none, and for what is neither. */
function scalarOf(text) {
  const double = text.match(DOUBLE);
  if (double) return double[1].replace(ESCAPE, (_, x, u, U, other) => (other === undefined ? String.fromCodePoint(parseInt(x ?? u ?? U, 16)) : (ESCAPED[other] ?? other)));
  const single = text.match(SINGLE);
  if (single) return single[1].replaceAll("''", "'");
  const plain = text.replace(COMMENT, "").trim();
  if (NO_PLAIN.test(plain) || /^(?:~|null|Null|NULL|)$/.test(plain)) return null;
  if (/^(?:yes|Yes|YES|true|True|TRUE|on|On|ON)$/.test(plain)) return true;
  if (/^(?:no|No|NO|false|False|FALSE|off|Off|OFF)$/.test(plain)) return false;
  if (/^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/.test(plain)) return null;
  return numberOf(plain) ?? momentOf(plain) ?? plain;
}

/** A number as YAML 1.1 writes it, with `_` between digits, in base 2, 8, 10, 16 or 60; undefined for another text. */
function numberOf(text) {
  const sign = text.startsWith("-") ? -1 : 1;
  const digits = text.replace(/^[-+]/, "").replaceAll("_", "");
  const exactly = (number) => (Number.isSafeInteger(number) ? sign * number : undefined);
  if (/^[-+]?0b[01_]+$/.test(text)) return exactly(parseInt(digits.slice(2), 2));
  if (/^[-+]?0x[\da-fA-F_]+$/.test(text)) return exactly(parseInt(digits.slice(2), 16));
  if (/^[-+]?0[0-7_]+$/.test(text)) return exactly(parseInt(digits, 8));
  if (/^[-+]?(?:0|[1-9][\d_]*)$/.test(text)) return exactly(Number(digits));
  if (/^[-+]?(?:\d[\d_]*\.[\d_]*(?:[eE][-+]\d+)?)$|^\.\d[\d_]*(?:[eE][-+]\d+)?$/.test(text)) return sign * Number(digits);
  if (/^[-+]?(?:[1-9][\d_]*(?::[0-5]?\d)+|\d[\d_]*(?::[0-5]?\d)+\.[\d_]*)$/.test(text)) {
    return sign * digits.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
  }
  return undefined;
}

/** A moment as ISO 8601 has it; undefined for another text, and for a day, which is so already. */
function momentOf(text) {
  const found = text.match(MOMENT);
  if (!found) return undefined;
  const [, year, month, day, hour, minute, second, fraction = "", sign, hours, minutes = "00"] = found;
  const two = (number) => number.padStart(2, "0");
  const micro = fraction.slice(0, 6).padEnd(6, "0");
  const zone = sign ? `${sign}${two(hours)}:${minutes}` : text.endsWith("Z") ? "+00:00" : "";
  return `${year}-${two(month)}-${two(day)}T${two(hour)}:${minute}:${second}${Number(micro) ? `.${micro}` : ""}${zone}`;
}
