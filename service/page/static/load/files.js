// What is loaded: tables, or texts such as those of a folder. The server reads them.

import { InputError } from "../errors.js";
import { t } from "../language.js";

const TABLES = /\.(csv|tsv|tab|jsonl|ndjson|json|parquet|arrows?|feather|ipc)(\.(gz|bz2|xz|zst))?$/i;
const TEXTS = /\.(md|markdown|mdx|txt|text|rst|html?|pdf)$/i;
const HEADED = /\.(md|markdown|mdx|html?)$/i;
const LINES = /\.(csv|tsv|tab|jsonl|ndjson)$/i;
const HIDDEN = /(^|\/)([._]|node_modules\/)/;
const SAMPLE_BYTES = 2 ** 20;
const LINE_END = 10;

export const ACCEPTED = ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.parquet,.arrow,.arrows,.feather,.ipc,.gz,.bz2,.xz,.zst,.md,.markdown,.mdx,.txt,.text,.rst,.html,.htm,.pdf";

/** Files that are loaded together. */
export class Source {
  /** files: [{name: path below what was dropped, file}]. Throws where there is nothing to load, or both tables and texts. */
  constructor(files) {
    // Of a file alone the server says why it cannot be read; in a folder others are expected.
    const readable = files.length === 1 ? files : files.filter(({ name }) => !HIDDEN.test(name) && (TABLES.test(name) || TEXTS.test(name)));
    if (readable.length === 0) throw new InputError(t("load.noFile", { files: files.slice(0, 3).map((each) => each.name).join(", ") }));
    const texts = readable.filter(({ name }) => TEXTS.test(name));
    if (texts.length !== 0 && texts.length !== readable.length) throw new InputError(t("load.severalKinds"));
    this.files = [...readable].sort((a, b) => (a.name < b.name ? -1 : 1));
    this.leftOut = files.length - readable.length;
    this.bytes = readable.reduce((sum, { file }) => sum + file.size, 0);
    this.texts = texts.length > 0;
    this.headed = texts.some(({ name }) => HEADED.test(name));
  }

  /** What it may be called. */
  get title() {
    const [first] = this.files;
    return first.name.includes("/") ? first.name.split("/")[0] : first.name.replace(/(\.[a-z]+)?\.\w+$/i, "");
  }

  /** The first file, or of a large one of lines its beginning: enough to tell what it holds. */
  async sample() {
    const [{ name, file }] = this.files;
    if (!LINES.test(name) || file.size <= 4 * SAMPLE_BYTES) return file;
    const bytes = new Uint8Array(await file.slice(0, SAMPLE_BYTES).arrayBuffer());
    const end = bytes[0] >= 0xfe ? -1 : bytes.lastIndexOf(LINE_END); // UTF-16 has an end of two bytes
    return end === -1 ? file : file.slice(0, end + 1);
  }
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
