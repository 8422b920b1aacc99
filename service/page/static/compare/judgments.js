// The part of a comparison that measures: a judged set, and what both settings make of it.

import { button, field, h, replace } from "../dom.js";
import { InputError } from "../errors.js";
import { number, t } from "../language.js";
import { errorNotice } from "../notices.js";
import { judgedLines, judgedSet, qrelsOf, queriesOf } from "./judged.js";
import { compared, mostDifferent, summary } from "./run.js";

const MOST_QUERIES = 300;
const MOST_BYTES = 2 ** 26; // of the two files
const SHOWN = 20; // queries of the table

/** The section of judged sets. */
export class Judgments {
  /** settings: gives the collection and the two settings of now. open: called with a query that is chosen. */
  constructor(settings, open, signal) {
    this._settings = settings;
    this._open = open;
    this._signal = signal;
    this._files = {};
    this._lines = h("textarea", { rows: 4, class: "code", spellcheck: "false", placeholder: t("compare.linesExample") });
    this._state = h("p", { class: "hint", role: "status", text: t("compare.filesHint") });
    this._outcome = h("div", { class: "stack" });
    const input = h("input", { type: "file", hidden: true, multiple: true, accept: ".jsonl,.tsv,.txt,.qrels", "aria-label": t("compare.files") });
    input.addEventListener("change", () => this.take([...input.files]).then(() => (input.value = "")));
    const run = button(t("compare.run"), () => this._run(), { class: "primary" });
    this.element = h(
      "section",
      { class: "card stack" },
      h("h2", { text: t("compare.judged") }),
      h("div", { class: "drop" }, this._state, button(t("compare.files"), () => input.click()), input),
      field(t("compare.lines"), this._lines, t("compare.linesHint")),
      h("div", { class: "row" }, run),
      this._outcome,
    );
  }

  /** Takes dropped files: queries by `.jsonl`, judgments by any other ending. */
  async take(files) {
    try {
      if (files.reduce((sum, each) => sum + each.size, 0) > MOST_BYTES) throw new InputError(t("compare.tooLarge", { megabytes: MOST_BYTES / 2 ** 20 }));
      for (const file of files) {
        const text = await file.text();
        if (/\.jsonl$/i.test(file.name)) this._files.queries = queriesOf(text);
        else this._files.qrels = qrelsOf(text);
      }
      const { queries, qrels } = this._files;
      this._state.textContent = t("compare.taken", { queries: queries ? number(queries.size) : "–", judged: qrels ? number(qrels.size) : "–" });
      replace(this._outcome);
    } catch (error) {
      replace(this._outcome, errorNotice(error));
    }
  }

  _judged() {
    const { queries, qrels } = this._files;
    const judged = this._lines.value.trim() !== "" ? judgedLines(this._lines.value) : queries && qrels ? judgedSet(queries, qrels) : [];
    if (judged.length === 0) throw new InputError(t("compare.noJudged"));
    return judged;
  }

  async _run() {
    const cancel = new AbortController();
    try {
      const all = this._judged();
      const judged = all.slice(0, MOST_QUERIES);
      const { collection, settings } = this._settings();
      const progress = h("progress", { max: judged.length, value: 0, "aria-label": t("compare.judged") });
      replace(this._outcome, progress, h("div", { class: "row" }, button(t("cancel"), () => cancel.abort())));
      const rows = await compared(collection, judged, settings, (count) => (progress.value = count), AbortSignal.any([cancel.signal, this._signal]));
      const part = all.length > judged.length ? h("p", { class: "notice", text: t("compare.part", { count: number(judged.length), all: number(all.length) }) }) : null;
      replace(this._outcome, part, summaryTable(rows), this._table(mostDifferent(rows, SHOWN)));
    } catch (error) {
      replace(this._outcome, error.name === "AbortError" ? null : errorNotice(error));
    }
  }

  _table(rows) {
    if (rows.length === 0) return h("p", { class: "hint", text: t("compare.same") });
    const headings = [t("hit.query"), "nDCG@10 A", "nDCG@10 B", "recall@10 A", "recall@10 B"];
    return table(
      t("compare.different"),
      headings,
      rows.map((row) => h("tr", {}, h("th", { scope: "row" }, button(row.query, () => this._open(row.query), { class: "link" })), [...row.ndcg, ...row.recall].map((each) => h("td", { class: "figures", text: number(each, 3) })))),
    );
  }
}

function summaryTable(rows) {
  const { ndcg, recall, better } = summary(rows);
  const line = (name, values, digits) => h("tr", {}, h("th", { scope: "row", text: name }), values.map((each) => h("td", { class: "figures", text: number(each, digits) })));
  return table(t("compare.means", { count: number(rows.length) }), ["", "A", "B"], [line("nDCG@10", ndcg, 4), line("recall@10", recall, 4), line(t("compare.better"), better, 0)]);
}

function table(caption, headings, rows) {
  const head = headings.map((each) => (each === "" ? h("td") : h("th", { scope: "col", text: each })));
  return h("section", {}, h("h3", { text: caption }), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows))));
}
