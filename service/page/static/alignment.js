// Why a hit is one: the words that it shares with the query, and which token met which.

import { h } from "./dom.js";
import { number, t } from "./language.js";

/** Tables of an explanation. */
export function explanationElement(explanation) {
  return h("div", { class: "explanation" }, [
    section(t("hit.terms"), explanation.terms.length ? termsTable(explanation.terms) : h("p", { class: "hint", text: t("hit.noTerms") })),
    explanation.bm25?.length ? section(t("side.bm25"), wordsTable(explanation.bm25)) : null,
    explanation.alignment.length ? section(t("hit.alignment"), alignmentTable(explanation.alignment)) : null,
  ]);
}

function section(title, content) {
  return h("section", {}, h("h4", { text: title }), content);
}

function table(headings, rows) {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": headings.join(", ") },
    h("table", {}, h("thead", {}, h("tr", {}, headings.map((each) => h("th", { scope: "col", text: each })))), h("tbody", {}, rows)),
  );
}

/** A bar as long as its share of what is most, with its number. */
function bar(share, text, side) {
  const fill = h("span", { class: `fill side-${side}` });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("td", { class: "measure" }, h("span", { class: "track" }, fill), h("span", { class: "figure", text }));
}

function termsTable(terms) {
  const sorted = [...terms].sort((a, b) => b.product - a.product);
  const most = sorted[0].product || 1;
  return table(
    [t("embed.token"), `${t("hit.query")} × ${t("hit.idf")} × ${t("hit.document")}`, t("hit.product")],
    sorted.map((each) =>
      h("tr", {}, h("td", { class: "token", text: each.token }), h("td", { class: "factors", text: `${number(each.query_weight, 2)} × ${number(each.idf, 2)} × ${number(each.document_weight, 2)}` }), bar(each.product / most, number(each.product, 3), "sparse")),
    ),
  );
}

function wordsTable(words) {
  const sorted = [...words].sort((a, b) => b.product - a.product);
  const most = sorted[0].product || 1;
  return table(
    [t("embed.token"), `${t("hit.query")} × ${t("hit.idf")} × ${t("hit.document")}`, t("hit.product")],
    sorted.map((each) =>
      h("tr", {}, h("td", { class: "token", text: each.term }), h("td", { class: "factors", text: `${each.query_count} × ${number(each.idf, 2)} × ${number(each.document_weight, 2)}` }), bar(each.product / most, number(each.product, 3), "bm25")),
    ),
  );
}

function alignmentTable(alignment) {
  return table(
    [t("hit.query"), t("hit.document"), t("hit.similarity")],
    alignment.map((each) =>
      h("tr", {}, h("td", { class: "token" }, each.query_token?.replace(/^\s+$/, "␣") ?? `#${each.query_position}`, each.prompt && h("span", { class: "hint", text: ` ${t("hit.prompt")}` })), h("td", { class: "token", text: each.document_token?.replace(/^\s+$/, "␣") ?? `#${each.document_position}` }), bar(each.similarity, number(each.similarity, 3), "colbert")),
    ),
  );
}
