// Judged sets: queries with the grades of documents, from the files of BEIR or from lines.

import { InputError } from "../errors.js";
import { t } from "../language.js";

/** The queries of `queries.jsonl`: a Map of id to text. Throws where a line is none. */
export function queriesOf(text) {
  const queries = new Map();
  for (const [place, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    try {
      const record = JSON.parse(line);
      const id = record._id ?? record.id;
      if (typeof record.text !== "string" || id === undefined) throw new Error();
      queries.set(String(id), record.text);
    } catch {
      throw new InputError(t("compare.badQuery", { line: place + 1 }));
    }
  }
  return queries;
}

/** Grades from `qrels.tsv` (query, document, grade) or TREC's four columns: a Map of query id to a Map of grades. */
export function qrelsOf(text) {
  const qrels = new Map();
  for (const [place, line] of text.split("\n").entries()) {
    const parts = line.trim().split(/\t|\s+/);
    if (parts.length < 3) {
      if (line.trim() !== "") throw new InputError(t("compare.badQrel", { line: place + 1 }));
      continue;
    }
    const grade = Number(parts.at(-1));
    const [query, document] = parts.length === 4 ? [parts[0], parts[2]] : parts;
    if (Number.isInteger(grade)) graded(qrels, query, document, grade);
    else if (place > 0) throw new InputError(t("compare.badQrel", { line: place + 1 })); // the first may name the columns
  }
  return qrels;
}

/** A judged set from lines `query<TAB>document id`, or with a grade as a third part. Throws where a line is none. */
export function judgedLines(text) {
  const qrels = new Map();
  for (const [place, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const [query, document, grade = "1"] = line.split("\t").map((each) => each.trim());
    if (!query || !document || !Number.isInteger(Number(grade))) throw new InputError(t("compare.badLine", { line: place + 1 }));
    graded(qrels, query, document, Number(grade));
  }
  return [...qrels].map(([query, grades]) => ({ query, grades }));
}

function graded(qrels, query, document, grade) {
  if (!qrels.has(query)) qrels.set(query, new Map());
  qrels.get(query).set(document, grade);
}

/** The queries that have a text and a relevant document, in the order of the judgments. */
export function judgedSet(queries, qrels) {
  return [...qrels].filter(([id, grades]) => queries.get(id)?.trim() && [...grades.values()].some((grade) => grade > 0)).map(([id, grades]) => ({ query: queries.get(id), grades }));
}
