// What is loaded: files of one kind, and the records that they hold, read anew each time.

import { InputError } from "../errors.js";
import { t } from "../language.js";
import { foundEncoding, textOf } from "./bytes.js";
import { arrayRecords, isLines, lineRecords } from "./json.js";
import { textRecords } from "./markdown.js";
import { foundDelimiter, tableRecords } from "./tables.js";

const KINDS = { table: /\.(csv|tsv|tab)(\.gz)?$/i, lines: /\.(jsonl|ndjson)(\.gz)?$/i, json: /\.json(\.gz)?$/i, markdown: /\.(md|markdown|mdx)$/i, text: /\.(txt|text|rst)$/i };
const BEGINNING = 2 ** 16; // characters that tell what a file holds
const HIDDEN = /(^|\/)([._]|node_modules\/)/;

export const ACCEPTED = ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.md,.markdown,.mdx,.txt,.text,.rst,.gz";

function kindOf(name) {
  return Object.keys(KINDS).find((each) => KINDS[each].test(name)) ?? null;
}

/** Files of one kind; texts of several, as of a folder. */
export class Source {
  /** files: [{name: path below what was dropped, file}]. Throws where there is nothing to load, or things of several kinds. */
  constructor(files) {
    const readable = files.filter(({ name }) => !HIDDEN.test(name) && kindOf(name) !== null);
    if (readable.length === 0) throw new InputError(t("load.noFile", { files: files.slice(0, 3).map((each) => each.name).join(", ") }));
    const texts = readable.filter(({ name }) => ["markdown", "text"].includes(kindOf(name)));
    if (texts.length !== 0 && texts.length !== readable.length) throw new InputError(t("load.severalKinds"));
    if (texts.length === 0 && new Set(readable.map(({ name }) => kindOf(name))).size > 1) throw new InputError(t("load.severalKinds"));
    this.files = readable.sort((a, b) => (a.name < b.name ? -1 : 1));
    this.leftOut = files.length - readable.length;
    this.bytes = readable.reduce((sum, { file }) => sum + file.size, 0);
    this.texts = texts.length > 0;
    this.markdown = texts.some(({ name }) => kindOf(name) === "markdown");
    this.cells = kindOf(readable[0].name) === "table";
    this.options = { encoding: "utf-8", delimiter: ",", split: true };
  }

  /** What it may be called. */
  get title() {
    const [first] = this.files;
    return first.name.includes("/") ? first.name.split("/")[0] : first.name.replace(/(\.[a-z]+)?\.\w+$/i, "");
  }

  /** Finds out how it is written: the encoding of its first file that is no UTF-8, and its delimiter. */
  async find(signal) {
    for (const { file } of this.files) {
      this.options.encoding = await foundEncoding(file, signal);
      if (this.options.encoding !== "utf-8") break;
    }
    if (!this.cells) return;
    const lines = (await this._beginning(this.files[0].file)).split(/\r\n|\r|\n/);
    const said = lines[0].match(/^sep=(.)$/i);
    this.options.delimiter = said ? said[1] : foundDelimiter(this.files[0].name, lines[0]);
  }

  async _beginning(file) {
    let text = "";
    for await (const piece of textOf(file, this.options.encoding)) {
      text += piece;
      if (text.length >= BEGINNING) break;
    }
    return text.slice(0, BEGINNING);
  }

  /** {file, line, record}, or {file, line, problem} of what is none; of an array with `number` for `line`. counted: told of bytes as they are read. */
  async *records(counted = () => null) {
    for (const { name, file } of this.files) {
      for await (const found of this._recordsOf(name, file, counted)) yield { file: name, ...found };
    }
  }

  async *_recordsOf(name, file, counted) {
    const { encoding, delimiter, split } = this.options;
    const kind = kindOf(name);
    if (kind === "markdown" || kind === "text") {
      let whole = "";
      for await (const piece of textOf(file, await this._encodingOf(file), counted)) whole += piece;
      for (const record of textRecords(name.normalize("NFC"), whole, { markdown: kind === "markdown", split })) yield { line: 1, record };
      return;
    }
    const pieces = textOf(file, encoding, counted);
    if (kind === "table") yield* tableRecords(pieces, delimiter);
    else if (kind === "lines" || isLines(await this._beginning(file))) yield* lineRecords(pieces);
    else yield* arrayRecords(pieces);
  }

  /** Files of a folder need not all have the encoding of one. */
  async _encodingOf(file) {
    return this.files.length > 1 && (await foundEncoding(file, new AbortController().signal)) === "utf-8" ? "utf-8" : this.options.encoding;
  }
}

/** Where an item stands, in words. */
export function placeOf({ file, line, number }) {
  return number === undefined ? t("load.line", { file, line }) : t("load.record", { file, number });
}

/** What was dropped, folders with all that is in them. To be called while the event is handled. */
export function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return Promise.resolve([...transfer.files].map((file) => ({ name: file.name, file })));
  return Promise.all(entries.map(filesBelow)).then((found) => found.flat());
}

async function filesBelow(entry) {
  const called = (method) => new Promise((resolve, reject) => method.call(entry, resolve, reject));
  if (entry.isFile) return [{ name: entry.fullPath.replace(/^\//, ""), file: await called(entry.file) }];
  const reader = entry.createReader();
  const inside = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // a part at a time
    if (some.length === 0) break;
    inside.push(...some);
  }
  return (await Promise.all(inside.map(filesBelow))).flat();
}

/** The files of a control. */
export function chosenFiles(input) {
  return [...input.files].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
}
