// Rows of CSV and TSV (RFC 4180), whose first row names the columns.

import { InputError } from "../errors.js";
import { t } from "../language.js";
import { MOST_CHARACTERS } from "./bytes.js";

export const DELIMITERS = [",", ";", "\t", "|"];

const START = 0, PLAIN = 1, QUOTED = 2, CLOSED = 3; // where in a cell the reading is

/** Rows as {line, cells}; blank lines are none. Throws where a row is longer than a record may be. */
export async function* rowsOf(pieces, delimiter) {
  let line = 1;
  let began = 1;
  let size = 0;
  let cells = [];
  let cell = "";
  let state = START;
  let carriage = false;
  const row = () => {
    const found = { line: began, cells: [...cells, cell] };
    const blank = cells.length === 0 && cell === "" && state === START;
    [cells, cell, state, size, began] = [[], "", START, 0, line];
    return blank ? null : found;
  };
  for await (const piece of pieces) {
    for (const character of piece) {
      if (character === "\n" && carriage) {
        carriage = false;
        began = line += 1;
        continue;
      }
      if (carriage) began = line += 1;
      carriage = false;
      size += 1;
      if (state === QUOTED) {
        if (character === '"') state = CLOSED;
        else cell += character;
        if (character === "\n") line += 1;
      } else if (character === '"' && state === CLOSED) {
        cell += '"'; // two quotes are one
        state = QUOTED;
      } else if (character === '"' && state === START) state = QUOTED;
      else if (character === delimiter) {
        cells.push(cell);
        cell = "";
        state = START;
      } else if (character === "\n" || character === "\r") {
        carriage = character === "\r";
        if (!carriage) line += 1;
        const found = row();
        if (found) yield found;
      } else {
        cell += character;
        state = PLAIN;
      }
      if (size > MOST_CHARACTERS) throw new InputError(t("load.tooLong", { line: began }));
    }
  }
  if (state === QUOTED) yield { line: began, problem: t("load.openQuote") };
  else {
    const found = row();
    if (found) yield found;
  }
}

/** What stands between the names of columns. */
export function foundDelimiter(name, header) {
  if (/\.(tsv|tab)(\.gz)?$/i.test(name)) return "\t";
  const counts = DELIMITERS.map((each) => header.split(each).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))];
}

/** Records as {line, columns, record}, or {line, problem} of a row that is none. An empty cell is no value. */
export async function* tableRecords(pieces, delimiter) {
  let names = null;
  for await (const { line, cells, problem } of rowsOf(pieces, delimiter)) {
    if (problem) yield { line, problem };
    else if (names !== null) yield { line, columns: names, ...recordOf(names, cells) };
    else if (!/^sep=.$/i.test(cells.join(delimiter))) names = namesOf(cells); // Excel names the delimiter so
  }
}

function namesOf(cells) {
  // Tables written with their row numbers have no name for that column.
  const names = cells.map((each, place) => each.trim() || `column ${place + 1}`);
  const twice = names.find((each, place) => names.indexOf(each) !== place);
  if (twice !== undefined) throw new InputError(t("load.columnTwice", { column: twice }));
  return names;
}

function recordOf(names, cells) {
  if (cells.length !== names.length) return { problem: t("load.otherCells", { cells: cells.length, columns: names.length }) };
  const filled = names.map((name, place) => [name, cells[place]]).filter(([, cell]) => cell.trim() !== "");
  const record = Object.fromEntries(filled);
  if (record.metadata === undefined) return { record };
  try {
    return { record: { ...record, metadata: JSON.parse(record.metadata) } };
  } catch {
    return { problem: t("load.badMetadata") };
  }
}
