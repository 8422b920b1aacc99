// What is loaded: tables, or texts such as those of a folder. The server reads them, and says which kinds it reads.

import { InputError } from "../errors.js";
import { t } from "../language.js";

const HIDDEN = /(^|\/)([._]|node_modules\/)/;
const SAMPLE_BYTES = 2 ** 20;
const LINE_END = 10;

/** The kinds of files that the server reads, as its `/info` tells of them. */
export class FileKinds {
  constructor({ kinds, packings }) {
    this._kinds = kinds;
    this._packings = packings;
  }

  /** What a control for files accepts. */
  get accepted() {
    return [...this._kinds.flatMap(({ endings }) => endings), ...this._packings].join(",");
  }

  /** What texts may say of them. */
  get words() {
    const names = (kinds) => kinds.map(({ name }) => name).join(", ");
    return { kinds: names(this._kinds), packed: names(this._kinds.filter(({ packed }) => packed)), packings: this._packings.join(", ") };
  }

  /** {kind, stem, packed} of a file by its name; kind is undefined where none ends so. */
  of(name) {
    const packing = this._packings.find((each) => name.toLowerCase().endsWith(each)) ?? "";
    const bare = name.slice(0, name.length - packing.length);
    const ends = (ending) => bare.toLowerCase().endsWith(ending);
    const kind = this._kinds.find(({ endings, packed }) => (packed || packing === "") && endings.some(ends));
    const ending = kind?.endings.find(ends) ?? "";
    return { kind, stem: bare.slice(0, bare.length - ending.length), packed: packing !== "" };
  }
}

/** Files that are loaded together. */
export class Source {
  /** files: [{name: path below what was dropped, file}]. Throws where there is nothing to load, or both tables and texts. */
  constructor(files, kinds) {
    const known = files.map((each) => ({ ...each, ...kinds.of(each.name) }));
    // Of a file alone the server says why it cannot be read; in a folder others are expected.
    const readable = known.length === 1 ? known : known.filter(({ name, kind }) => kind && !HIDDEN.test(name));
    if (readable.length === 0) throw new InputError(t("load.noFile", { files: files.slice(0, 3).map((each) => each.name).join(", "), ...kinds.words }));
    const texts = readable.filter(({ kind }) => kind?.text);
    if (texts.length !== 0 && texts.length !== readable.length) throw new InputError(t("load.severalKinds"));
    this.files = [...readable].sort((a, b) => (a.name < b.name ? -1 : 1));
    this.leftOut = files.length - readable.length;
    this.bytes = readable.reduce((sum, { file }) => sum + file.size, 0);
    this.texts = texts.length > 0;
    this.headed = texts.some(({ kind }) => kind.headings);
  }

  /** What it may be called. */
  get title() {
    const [{ name, stem }] = this.files;
    return name.includes("/") ? name.split("/")[0] : stem;
  }

  /** The first file, or of a large one of lines its beginning: enough to tell what it holds. */
  async sample() {
    const [{ kind, packed, file }] = this.files;
    if (!kind?.lines || packed || file.size <= 4 * SAMPLE_BYTES) return file;
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
