// The view of searching.

import { addressOf, go, writeAddress } from "./address.js";
import { api, ApiError, hasKey } from "./api.js";
import { showCode } from "./code.js";
import { button, debounced, field, h, replace, select } from "./dom.js";
import { examplesElement, examplesOf, exampleValues, withExample, withoutExample } from "./examples.js";
import { filterOf, Filters, filterState, filterText } from "./filters.js";
import { HitElement } from "./hits.js";
import { number, t } from "./language.js";
import { copyText, emptyNotice, errorNotice, remark } from "./notices.js";
import { rankingControls, rankingJson, rankingOf, rankingValues } from "./ranking.js";
import { startElement } from "./start.js";
import { Targets } from "./targets.js";
import { sliders, weightedSum, weightsOf, weightsText } from "./weights.js";

const PAUSE = 300; // milliseconds without a key until what was typed is searched for
const HITS = [5, 10, 20, 50];

/** Shows the view. signal: ends its requests when it is left. */
export async function show(root, values, signal) {
  const targets = await Targets.asked(signal);
  const name = values.get("c") || targets.names[0];
  if (targets.names.length === 0) {
    replace(root, emptyNotice(t("search.noCollections"), t("search.noCollectionsText"), h("a", { class: "button primary", href: addressOf("load"), text: t("load.one") }), button(t("search.makeOne"), () => go("collections", { new: 1 }))));
    return;
  }
  new SearchView(root, targets, name, await targets.described(name, signal), values, signal);
}

class SearchView {
  /** described: what the target of this name has. */
  constructor(root, targets, name, described, values, signal) {
    this._targets = targets;
    this._collection = name;
    this._described = described;
    this._signal = signal;
    this._request = null;
    this._hits = [];
    this._topK = HITS.includes(Number(values.get("k"))) ? Number(values.get("k")) : 10;
    this._asked = weightsOf(values.get("w")); // weights of the request; null: the collection's own
    this._filters = filterState(values.get("f"), this._fields());
    this._ranking = rankingOf(values);
    this._examples = examplesOf(values);
    this._build(root, values.get("q") ?? "");
    this._search();
    this._drawFilters(); // after the search is sent, since counts of values may come later than hits
  }

  _fields() {
    return this._described.fields;
  }

  _build(root, query) {
    this._input = h("input", { type: "search", id: "query", value: query, placeholder: t("search.placeholder"), autocomplete: "off", enterkeyhint: "search", "aria-label": t("search.label") });
    const later = debounced(() => this._search(), PAUSE);
    this._later = later;
    this._input.addEventListener("input", (event) => {
      this._examples = { like: [], unlike: [] }; // words take their place
      if (!event.isComposing) later(); // a syllable that is being put together is no word yet
    });
    this._input.addEventListener("compositionend", () => later());
    this._input.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" || event.isComposing || !this._ordered?.length) return;
      event.preventDefault();
      this._ordered[0].element.focus();
    });
    const { options, names: known } = this._targets;
    const others = known.includes(this._collection) ? [] : [[this._collection, this._collection]]; // a shared address may name what is gone
    const names = select([...options, ...others], this._collection, { "aria-label": t("collection") });
    names.addEventListener("change", async () => {
      const chosen = names.value;
      const described = await this._targets.described(chosen, this._signal);
      if (names.value !== chosen) return;
      [this._collection, this._described] = [chosen, described];
      this._asked = null;
      this._used = null;
      this._filters = {};
      this._examples = { like: [], unlike: [] };
      this._ranking = { ...this._ranking, group: "", boosts: [] };
      this._drawFilters();
      this._search();
    });
    const hits = select(HITS.map((each) => [each, number(each)]), this._topK);
    hits.addEventListener("change", () => {
      this._topK = Number(hits.value);
      this._search();
    });
    this._weightsPlace = h("section");
    this._filtersPlace = h("div");
    this._rankingPlace = h("section");
    this._examplesPlace = h("div");
    this._status = h("div", { class: "status", role: "status" });
    this._local = h("div", { class: "notice", hidden: true });
    this._list = h("ol", { class: "hits", "aria-label": t("nav.search") });
    this._list.addEventListener("keydown", (event) => this._pressed(event));
    replace(
      root,
      h("h1", { class: "visually-hidden", text: t("nav.search") }),
      h(
        "form",
        { class: "searchbar", role: "search", on: { submit: (event) => (event.preventDefault(), later.now()) } },
        names,
        this._input,
        h("button", { type: "submit", class: "primary", text: t("search.go") }),
      ),
      h(
        "div",
        { class: "columns" },
        h(
          "details",
          { class: "options", open: matchMedia("(min-width: 60rem)").matches },
          h("summary", { text: t("search.options") }),
          this._weightsPlace,
          h("section", {}, h("h2", { text: t("filters.title") }), this._filtersPlace),
          this._rankingPlace,
          field(t("search.topK"), hits),
          h("p", { class: "hint keys", text: t("search.keys") }),
        ),
        h("div", { class: "results" }, this._examplesPlace, this._status, this._local, this._list),
      ),
    );
    if (matchMedia("(pointer: fine)").matches) this._input.focus();
  }

  _drawFilters() {
    const changed = (state) => {
      this._filters = state;
      this._search();
    };
    const controls = new Filters(this._collection, this._fields(), this._filters, changed, this._signal).element;
    const clear = button(t("filters.clear"), () => {
      this._filters = {};
      this._drawFilters();
      this._search();
    });
    replace(this._filtersPlace, controls, Object.keys(this._fields()).length ? h("div", { class: "row" }, clear) : null);
    const ranking = rankingControls(this._fields(), this._ranking, (changed) => {
      this._ranking = changed;
      this._search();
    });
    replace(this._rankingPlace, h("h2", { text: t("ranking.title") }), ranking);
  }

  /** What is shown, so that whoever opens it sees the same order. */
  _address() {
    const weights = this._moved() ? this._weights : this._asked;
    return { c: this._collection, q: this._input.value.trim(), k: this._topK === 10 ? null : this._topK, w: weights && weightsText(weights), f: filterText(this._filters), ...rankingValues(this._ranking), ...exampleValues(this._examples) };
  }

  async _search() {
    this._request?.abort();
    if (this._moved()) this._asked = { ...this._weights }; // what comes next is asked for as it is shown
    const request = new AbortController();
    this._request = request;
    const signal = AbortSignal.any([request.signal, this._signal]);
    writeAddress("search", this._address());
    const text = this._input.value.trim();
    const query = this._examples.like.length ? this._examples : text;
    replace(this._examplesPlace, examplesElement(this._examples, (id) => this._setExamples(withoutExample(this._examples, id))));
    if (query === "") {
      this._hits = [];
      replace(this._list);
      replace(this._weightsPlace);
      this._local.hidden = true;
      return this._start(signal);
    }
    this._list.setAttribute("aria-busy", "true");
    try {
      const began = performance.now();
      const { answer, problem } = await this._answer(query, signal);
      this._show(query, answer, problem, performance.now() - began);
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(this._list);
      this._local.hidden = true;
      replace(this._status, errorNotice(error, () => this._search()));
    } finally {
      if (this._request === request) this._list.removeAttribute("aria-busy");
    }
  }

  /** Shows what may be asked of the collection. */
  async _start(signal) {
    const empty = this._described.documents === 0;
    replace(this._status, empty ? this._emptyCollection() : h("p", { class: "hint", text: t("search.start") }));
    if (empty) return;
    try {
      const ask = (text) => {
        this._input.value = text;
        this._search();
      };
      const element = await startElement(this._collection, ask, signal);
      if (element && !signal.aborted) this._status.append(element);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  /** What is asked of the server. */
  _body(query) {
    return { collection: this._collection, query, top_k: this._topK, weights: this._asked, filter: filterOf(this._filters), ...rankingJson(this._ranking, this._fields()) };
  }

  /** The answer with explanations, or without where there would be too many. */
  async _answer(query, signal) {
    const json = { ...this._body(query), highlight: true };
    try {
      return { answer: await api("POST", "/search", { json: { ...json, explain: true }, signal }), problem: null };
    } catch (error) {
      if (!(error instanceof ApiError) || error.param !== "explain") throw error;
      return { answer: await api("POST", "/search", { json, signal }), problem: error.message };
    }
  }

  _emptyCollection() {
    return emptyNotice(t("search.empty"), null, h("a", { class: "button primary", href: addressOf("load", { c: this._collection }), text: t("load.one") }), button(t("search.addOne"), () => go("documents", { c: this._collection, new: 1 })));
  }

  _show(query, answer, problem, milliseconds) {
    this._used = answer.weights;
    this._weights = { ...answer.weights };
    this._hits = answer.hits.map((hit) => new HitElement(hit, problem, this._examples.like.length > 0, (side, id) => this._setExamples(withExample(this._examples, side, id))));
    this._drawSliders();
    const took = answer.took_ms;
    const text = t("search.took", { encode: number(took.encode, 1), retrieve: number(took.retrieve, 1), score: number(took.score, 1), total: number(took.total, 1), answer: number(milliseconds, 0) });
    const copy = button(t("search.copy"), () => copyText(location.href), { class: "quiet" });
    const given = Object.entries(this._body(query)).filter(([, value]) => value !== null);
    const code = button(t("code.show"), () => showCode(Object.fromEntries(given), hasKey()), { class: "quiet" });
    const shown = this._hits.length
      ? h("div", { class: "row" }, h("strong", { text: t("search.count", { count: number(this._hits.length) }) }), h("span", { class: "hint", text }), copy, code)
      : this._described.documents === 0
        ? this._emptyCollection()
        : emptyNotice(t("search.none"), t("search.noneText"));
    const unsure = this._hits.length && answer.confident === false ? h("p", { class: "hint", text: t("search.unsure") }) : null;
    replace(this._status, shown, unsure, answer.query?.truncated && h("p", { class: "notice", text: t("search.cut", { tokens: number(answer.query.tokens) }) }));
    this._order();
  }

  /** Whether the sliders stand elsewhere than in the search. */
  _moved() {
    return Boolean(this._used) && weightsText(this._weights) !== weightsText(this._used);
  }

  _byRanks() {
    return this._ranking.fusion === "rrf";
  }

  _drawSliders() {
    const changed = (weights) => {
      this._weights = weights;
      if (this._byRanks()) this._later(); // ranks are those among all candidates, which are not here
      else this._order();
      writeAddress("search", this._address());
    };
    replace(this._weightsPlace, h("h2", { text: t("weights.title") }), sliders(this._weights, changed));
  }

  /** Puts the hits into the order of the weights of now. */
  _order() {
    const scored = this._hits.map((each) => [each, this._byRanks() ? each.hit.score : weightedSum(each.hit.scores, this._weights)]);
    scored.sort(([, a], [, b]) => b - a);
    scored.forEach(([each, score], place) => each.update(place + 1, score, this._weights, !this._byRanks()));
    const elements = scored.map(([each]) => each.element);
    if (elements.some((element, place) => this._list.children[place] !== element) || this._list.children.length !== elements.length) {
      const focused = document.activeElement;
      replace(this._list, elements);
      if (this._list.contains(focused)) focused.focus();
    }
    this._ordered = scored.map(([each]) => each);
    this._local.hidden = this._byRanks() || !this._moved();
    if (this._moved() && !this._local.hasChildNodes()) {
      const again = button(t("weights.again"), () => {
        this._asked = { ...this._weights };
        return this._search();
      });
      const reset = button(t("weights.reset"), () => {
        this._weights = { ...this._used };
        this._drawSliders();
        this._order();
        writeAddress("search", this._address());
      });
      replace(this._local, h("p", { text: t("weights.local") }), h("div", { class: "row" }, again, reset));
    }
  }

  /** Searches with other examples, in the place of words. */
  _setExamples(examples) {
    this._examples = examples;
    this._input.value = "";
    return this._search();
  }

  _pressed(event) {
    const element = event.target.closest(".hit");
    const place = this._ordered.findIndex((each) => each.element === element);
    if (place < 0) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = this._ordered[place + step];
      if (next) next.element.focus();
      else if (step < 0) this._input.focus();
    } else if (event.key === "Enter" && event.target === element) this._ordered[place].toggle();
    else if (event.key === "Escape" && this._ordered[place].close()) element.focus();
  }
}
