// The view of what the encoder sees: each token painted by its lexical weight, and where a text is cut.

import { writeAddress } from "../address.js";
import { api } from "../api.js";
import { field, h, replace, select } from "../dom.js";
import { number, t } from "../language.js";
import { errorNotice } from "../notices.js";

const TOP = 12; // of the heaviest tokens

/** Shows the view. signal: ends its requests when it is left. */
export async function show(root, values, signal) {
  const text = h("textarea", { rows: 5, value: values.get("t") ?? t("embed.example"), required: true });
  const kind = select([["document", t("embed.document")], ["query", t("embed.query")]], values.get("as") === "query" ? "query" : "document");
  const place = h("div", { role: "status" });
  const encode = async () => {
    writeAddress("embed", { t: text.value.length <= 1000 ? text.value : null, as: kind.value });
    try {
      const json = { inputs: text.value, input_type: kind.value };
      const [embedded, [tokens]] = await Promise.all([
        api("POST", "/embed", { json: { ...json, outputs: ["dense", "sparse"] }, signal }),
        api("POST", "/tei/tokenize", { json: { inputs: text.value, prompt_name: kind.value }, signal }),
      ]);
      replace(place, embeddingElement(embedded, tokens));
    } catch (error) {
      if (error.name !== "AbortError") replace(place, errorNotice(error, encode));
    }
  };
  const submit = (event) => {
    event.preventDefault();
    return encode();
  };
  replace(
    root,
    h("h1", { text: t("embed.title") }),
    h("form", { class: "stack", on: { submit } }, field(t("embed.text"), text), h("div", { class: "row foot" }, field(t("embed.as"), kind), h("button", { type: "submit", class: "primary", text: t("embed.go") }))),
    place,
  );
  await encode();
}

function embeddingElement(embedded, tokens) {
  const [{ sparse, dense, tokens: read, truncated }] = embedded.embeddings;
  const weights = new Map(sparse.token_ids.map((id, place) => [id, sparse.weights[place]]));
  const most = Math.max(...sparse.weights, 0);
  const words = tokens.filter((token) => !token.special);
  const kept = read - (tokens.length - words.length);
  const heaviest = sparse.tokens.map((token, place) => [token, sparse.weights[place]]).sort(([, a], [, b]) => b - a).slice(0, TOP);
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "hint", text: t("embed.facts", { tokens: number(read), dense: number(dense.length), model: embedded.model }) }),
    truncated ? h("p", { class: "notice", text: t("embed.cut", { kept: number(kept), all: number(words.length) }) }) : null,
    h("section", {}, h("h2", { text: t("embed.tokens") }), h("p", { class: "tokens" }, words.map((token, place) => tokenElement(token, words[place - 1], place < kept ? (weights.get(token.id) ?? 0) : null, most)))),
    heaviest.length
      ? h(
          "section",
          {},
          h("h2", { text: t("embed.top") }),
          h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col", text: t("embed.token") }), h("th", { scope: "col", text: t("embed.weight") }))), h("tbody", {}, heaviest.map(([token, weight]) => h("tr", {}, h("td", { class: "token", text: wordOf(token) }), measure(weight / most, number(weight, 3)))))),
        )
      : null,
  );
}

/** A token without the mark of a word's beginning. */
function wordOf(token) {
  return token.replaceAll("▁", " ").trim() || token;
}

/** A token as a chip; weight null: it lies behind the cut. */
function tokenElement(token, before, weight, most) {
  const element = h("span", { class: weight === null ? "chip cut" : "chip", text: token.text, title: weight === null ? "" : `${t("embed.weight")} ${number(weight, 3)}` });
  if (weight) element.style.setProperty("--share", (weight / most).toFixed(3));
  if (before && before.stop < token.start) element.classList.add("apart");
  return element;
}

function measure(share, text) {
  const fill = h("span", { class: "fill side-sparse" });
  fill.style.width = `${share * 100}%`;
  return h("td", { class: "measure" }, h("span", { class: "track" }, fill), h("span", { class: "figure", text }));
}
