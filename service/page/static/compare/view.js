// The view of comparing: two settings side by side, for one query and over the queries of a judged set.

import { addressOf, writeAddress } from "../address.js";
import { api, collectionPath } from "../api.js";
import { button, h, replace, select } from "../dom.js";
import { number, t } from "../language.js";
import { emptyNotice, errorNotice, remark } from "../notices.js";
import { Judgments } from "./judgments.js";
import { settingElement, settingJson, settingOf, settingText } from "./settings.js";

const DEPTH = 10;
const NAMES = ["A", "B"];

/** Shows the view. signal: ends its requests when it is left. */
export async function show(root, values, signal) {
  const { collections } = await api("GET", "/collections", { signal });
  if (collections.length === 0) {
    replace(root, h("h1", { text: t("compare.title") }), emptyNotice(t("search.noCollections"), null, h("a", { class: "button primary", href: addressOf("load"), text: t("load.one") })));
    return;
  }
  const known = new Map(collections.map((each) => [each.name, each]));
  const collection = known.get(values.get("c")) ?? collections[0];
  new CompareView(root, known, collection, await defaultsOf(collection.name, signal), values, signal);
}

/** The weights and candidates that searches of a collection use where they give none. */
function defaultsOf(name, signal) {
  return api("GET", collectionPath(name, "defaults"), { signal });
}

class CompareView {
  constructor(root, collections, collection, defaults, values, signal) {
    this._collections = collections;
    this._collection = collection;
    this._signal = signal;
    this._request = null;
    this._settings = ["a", "b"].map((name) => settingOf(values.get(name), defaults));
    const names = select([...this._collections.keys()].map((name) => [name, name]), this._collection.name, { "aria-label": t("collection") });
    names.addEventListener("change", () => this._choose(names.value));
    this._input = h("input", { type: "search", id: "query", value: values.get("q") ?? "", placeholder: t("search.placeholder"), autocomplete: "off", "aria-label": t("search.label") });
    this._settingsPlace = h("div", { class: "pair" });
    this._results = h("div", { role: "status" });
    const current = () => ({ collection: this._collection.name, settings: this._settings.map((each) => settingJson(each, this._collection.fields)) });
    const judgments = new Judgments(current, (query) => this._openQuery(query), signal);
    document.addEventListener("dragover", (event) => event.preventDefault(), { signal });
    document.addEventListener("drop", (event) => (event.preventDefault(), judgments.take([...event.dataTransfer.files])), { signal });
    replace(
      root,
      h("h1", { text: t("compare.title") }),
      h("p", { class: "hint", text: t("compare.text") }),
      h("form", { class: "searchbar", role: "search", on: { submit: (event) => (event.preventDefault(), this._search()) } }, names, this._input, h("button", { type: "submit", class: "primary", text: t("search.go") })),
      this._settingsPlace,
      this._results,
      judgments.element,
    );
    this._drawSettings();
    this._search();
  }

  /** Compares in another collection, from its own defaults on. */
  async _choose(name) {
    this._request?.abort();
    this._request = new AbortController();
    try {
      const defaults = await defaultsOf(name, AbortSignal.any([this._request.signal, this._signal]));
      this._collection = this._collections.get(name);
      this._settings = NAMES.map(() => settingOf(null, defaults));
      this._drawSettings();
      this._search();
    } catch (error) {
      if (error.name !== "AbortError") replace(this._results, errorNotice(error, () => this._choose(name)));
    }
  }

  _drawSettings() {
    const elements = this._settings.map((setting, place) =>
      settingElement(NAMES[place], setting, this._collection.fields, (changed) => {
        this._settings[place] = changed;
        this._search();
      }),
    );
    elements.forEach((element, place) => element.append(button(t("compare.store", { name: NAMES[place] }), () => this._store(place), { class: "quiet", title: t("compare.storeHint") })));
    replace(this._settingsPlace, elements);
  }

  /** Has searches of the collection use the weights and candidates of a setting where they give none. */
  async _store(place) {
    const { weights, candidates } = this._settings[place];
    try {
      const stored = await api("PUT", collectionPath(this._collection.name, "defaults"), { json: { weights, candidates } });
      this._collections.set(stored.name, stored);
      this._collection = stored;
      remark(t("compare.stored", { name: NAMES[place], collection: stored.name }));
    } catch (error) {
      replace(this._results, errorNotice(error));
    }
  }

  _openQuery(query) {
    this._input.value = query;
    this._input.scrollIntoView({ block: "center" });
    this._input.focus();
    return this._search();
  }

  async _search() {
    this._request?.abort();
    this._request = new AbortController();
    const signal = AbortSignal.any([this._request.signal, this._signal]);
    const query = this._input.value.trim();
    const [a, b] = this._settings.map(settingText);
    writeAddress("compare", { c: this._collection.name, q: query, a, b });
    if (query === "") {
      replace(this._results);
      return;
    }
    try {
      const asked = this._settings.map((each) => ({ collection: this._collection.name, query, top_k: DEPTH, include: ["title"], ...settingJson(each, this._collection.fields) }));
      const answers = await Promise.all(asked.map((json) => api("POST", "/search", { json, signal })));
      const ids = answers.map(({ hits }) => hits.map((hit) => hit.id));
      replace(this._results, h("div", { class: "pair" }, answers.map((answer, side) => ranking(NAMES[side], answer.hits, ids[1 - side]))));
    } catch (error) {
      if (error.name !== "AbortError") replace(this._results, errorNotice(error, () => this._search()));
    }
  }
}

/** One of the two rankings. others: ids of the other. */
function ranking(name, hits, others) {
  const rows = hits.map((hit, place) => {
    const other = others.indexOf(hit.id);
    const moved = other < 0 ? t("compare.onlyHere") : other === place ? "=" : other > place ? `↑ ${number(other - place)}` : `↓ ${number(place - other)}`;
    return h("li", { class: other < 0 ? "only" : null, data: { id: hit.id } }, h("span", { class: "rank", text: place + 1 }), h("span", { class: "title", text: hit.title || hit.id }), h("span", { class: "hint moved", text: moved }), h("span", { class: "figure", text: number(hit.score, 3) }));
  });
  return h("section", { class: "card" }, h("h2", { text: name }), rows.length ? h("ol", { class: "plain ranking", "aria-label": name }, rows) : h("p", { class: "hint", text: t("search.none") }));
}
