// A file's bytes as text, in pieces: whatever its size, little of it is in memory.

import { InputError } from "../errors.js";
import { t } from "../language.js";

export const ENCODINGS = ["utf-8", "euc-kr", "shift_jis", "gb18030", "big5", "windows-1252", "utf-16le", "utf-16be"];
export const MOST_CHARACTERS = 2 ** 24; // of one record

const MARKS = { "utf-16le": [0xff, 0xfe], "utf-16be": [0xfe, 0xff] };
const FORMER = { ko: "euc-kr", ja: "shift_jis", "zh-TW": "big5", "zh-HK": "big5", zh: "gb18030" }; // "euc-kr" is code page 949

/** What comes out of a stream; the rest is left where nobody asks on. */
async function* piecesOf(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => null);
  }
}

/** The bytes of a file, unpacked where its name ends in .gz. counted: told of each piece's length in the file. */
async function* bytesOf(file, counted = () => null) {
  const counting = new TransformStream({
    transform(piece, out) {
      counted(piece.length);
      out.enqueue(piece);
    },
  });
  const stream = file.stream().pipeThrough(counting);
  const packed = /\.gz$/i.test(file.name);
  try {
    yield* piecesOf(packed ? stream.pipeThrough(new DecompressionStream("gzip")) : stream);
  } catch (error) {
    if (packed && error instanceof TypeError) throw new InputError(t("load.badGzip", { file: file.name }));
    throw error;
  }
}

/** The text of a file, in pieces. Throws where its bytes are no text of this encoding. */
export async function* textOf(file, encoding, counted) {
  const decoder = new TextDecoder(encoding, { fatal: true });
  const decoded = (...given) => {
    try {
      return decoder.decode(...given);
    } catch {
      throw new InputError(t("load.badEncoding", { file: file.name, encoding }));
    }
  };
  for await (const piece of bytesOf(file, counted)) yield decoded(piece, { stream: true });
  yield decoded();
}

/** The encoding that a file has: by its mark, else UTF-8 where all of it is that, else the likeliest one. */
export async function foundEncoding(file, signal) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let first = true;
  for await (const piece of bytesOf(file)) {
    signal.throwIfAborted();
    const marked = first && Object.keys(MARKS).find((name) => MARKS[name].every((byte, place) => piece[place] === byte));
    if (marked) return marked;
    first = false;
    try {
      decoder.decode(piece, { stream: true });
    } catch {
      return likeliest(piece);
    }
  }
  return "utf-8";
}

/** What is usual in a language of the browser, if it reads the text, else Western. */
function likeliest(piece) {
  const usual = (name) => FORMER[name] ?? FORMER[name.slice(0, 2)] ?? "euc-kr";
  return navigator.languages.map(usual).find((each) => reads(each, piece)) ?? "windows-1252";
}

function reads(encoding, piece) {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(piece, { stream: true });
  } catch {
    return "";
  }
}

/** Lines with their numbers. Throws where one is longer than a record may be. */
export async function* linesOf(pieces) {
  let rest = "";
  let line = 1;
  for await (const piece of pieces) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop();
    for (const text of parts) yield { line: line++, text };
    if (rest.length > MOST_CHARACTERS) throw new InputError(t("load.tooLong", { line }));
  }
  if (rest !== "") yield { line, text: rest };
}
