// The view of a collection's documents: browse, add, edit, delete.

import { addressOf, go, writeAddress } from "../address.js";
import { api, collectionPath } from "../api.js";
import { ask, confirmed } from "../dialogs.js";
import { button, field, h, replace, select } from "../dom.js";
import { InputError } from "../errors.js";
import { filterOf, Filters, filterState, filterText } from "../filters.js";
import { isObject, jsonOf } from "../json.js";
import { number, t } from "../language.js";
import { emptyNotice, errorNotice, remark } from "../notices.js";

const PAGE = 20;
const EXCERPT = 200;

/** Shows the view. signal: ends its requests when it is left. */
export async function show(root, values, signal) {
  const { collections } = await api("GET", "/collections", { signal });
  if (collections.length === 0) {
    replace(root, emptyNotice(t("search.noCollections"), t("search.noCollectionsText"), button(t("search.makeOne"), () => go("collections", { new: 1 }), { class: "primary" })));
    return;
  }
  const view = new DocumentsView(root, collections, values, signal);
  await view.load();
  if (values.get("new")) await view.add();
}

class DocumentsView {
  constructor(root, collections, values, signal) {
    this._fields = Object.fromEntries(collections.map((each) => [each.name, each.fields]));
    const names = Object.keys(this._fields);
    this._collection = names.includes(values.get("c")) ? values.get("c") : names[0];
    this._after = values.get("after");
    this._filters = filterState(values.get("f"), this._fields[this._collection]);
    this._order = values.get("o") in this._fields[this._collection] ? values.get("o") : "";
    this._descending = values.get("d") === "1";
    this._signal = signal;
    const chosen = select(names.map((name) => [name, name]), this._collection, { "aria-label": t("collection") });
    chosen.addEventListener("change", () => {
      [this._collection, this._after, this._filters, this._order] = [chosen.value, null, {}, ""];
      this._drawOptions();
      this.load();
    });
    this._options = h("details", { class: "options", open: filterOf(this._filters) !== null || this._order !== "" });
    this._place = h("div");
    replace(
      root,
      h("div", { class: "row spread" }, h("h1", { text: t("documents.title") }), h("div", { class: "row" }, chosen, button(t("documents.add"), () => this.add(), { class: "primary" }))),
      this._options,
      this._place,
    );
    this._drawOptions();
  }

  /** Filters, and the order of a field. */
  _drawOptions() {
    const fields = this._fields[this._collection];
    const anew = () => {
      this._after = null;
      return this.load();
    };
    const order = select([["", t("documents.byId")], ...Object.keys(fields).map((name) => [name, name])], this._order);
    order.addEventListener("change", () => {
      this._order = order.value;
      anew();
    });
    const descending = h("input", { type: "checkbox", checked: this._descending });
    descending.addEventListener("change", () => {
      this._descending = descending.checked;
      if (this._order !== "") anew();
    });
    const filtered = (state) => {
      this._filters = state;
      anew();
    };
    const filters = new Filters(this._collection, fields, this._filters, filtered, this._signal).element;
    replace(this._options, h("summary", { text: t("documents.options") }), h("section", {}, h("div", { class: "fields" }, field(t("documents.order"), order), h("label", { class: "check" }, descending, t("documents.descending")))), h("section", {}, filters));
  }

  async load() {
    const filter = filterOf(this._filters);
    writeAddress("documents", { c: this._collection, after: this._after, f: filterText(this._filters), o: this._order, d: this._order !== "" && this._descending ? 1 : null });
    try {
      const params = { limit: PAGE };
      if (this._after !== null) params.after = this._after;
      if (filter !== null) params.filter = JSON.stringify(filter);
      if (this._order !== "") Object.assign(params, { order_by: this._order, order: this._descending ? "desc" : "asc" });
      const [page, { count }] = await Promise.all([
        api("GET", collectionPath(this._collection, "documents"), { params, signal: this._signal }),
        api("POST", collectionPath(this._collection, "documents", "count"), { json: { filter }, signal: this._signal }),
      ]);
      this._draw(page, count);
    } catch (error) {
      if (error.name !== "AbortError") replace(this._place, errorNotice(error, () => this.load()));
    }
  }

  _draw({ documents, next }, count) {
    const turn = (after) => {
      this._after = after;
      return this.load();
    };
    const turns = h("div", { class: "row" }, this._after !== null && button(t("documents.first"), () => turn(null)), next !== null && button(t("documents.next"), () => turn(next)));
    const list = documents.length
      ? this._table(documents)
      : emptyNotice(t("documents.none"), null, h("a", { class: "button", href: addressOf("load", { c: this._collection }), text: t("load.one") }), button(t("documents.add"), () => this.add(), { class: "primary" }));
    replace(this._place, documents.length ? h("p", { class: "hint", role: "status", text: t("jobs.documents", { done: number(count) }) }) : null, list, turns);
  }

  _table(documents) {
    const headings = [t("documents.documentTitle"), t("documents.text"), t("load.kept"), ""];
    const wide = (place) => (place === 2 ? "wide" : null); // what a phone has no room for
    const head = headings.map((each, place) => h(each ? "th" : "td", { scope: each ? "col" : null, class: wide(place), text: each }));
    return h("table", { class: "documents", "aria-label": t("documents.title") }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, documents.map((each) => this._row(each))));
  }

  _row(found) {
    const metadata = Object.entries(found.metadata ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    const act = (name, action) => button(t(name), () => action(found), { class: "quiet", "aria-label": `${t(name)}: ${found.id}` });
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("span", { class: "title", text: found.title || found.id }), found.title ? h("span", { class: "id", text: found.id }) : null),
      h("td", { class: "text", text: Array.from(found.text.slice(0, 2 * EXCERPT)).slice(0, EXCERPT).join("") }),
      h("td", { class: "wide", text: metadata.join(" · ") }),
      h("td", { class: "acts" }, act("edit", (each) => this._edit(each)), act("delete", (each) => this._delete(each))),
    );
  }

  /** Asks for a new document and writes it. */
  async add() {
    await this._write(t("documents.new"), { id: "", title: "", text: "", metadata: {} }, {});
  }

  async _edit(found) {
    // Who has written it since is not overwritten.
    const { position } = await api("GET", collectionPath(this._collection, "stats"), { signal: this._signal });
    // By its id in a body: in a URL the ids "." and ".." are steps, which lead to the collection.
    const json = { ids: [found.id] };
    const read = await api("POST", collectionPath(this._collection, "documents", "get"), { json, signal: this._signal });
    if (read.documents.length === 0) return this.load();
    const [current] = read.documents;
    await this._write(t("documents.editing", { id: found.id }), current, { if_position: position });
  }

  async _write(title, before, conditions) {
    const id = h("input", { value: before.id, required: true, maxlength: 512, readonly: before.id !== "" });
    const heading = h("input", { value: before.title ?? "" });
    const text = h("textarea", { rows: 8, value: before.text, required: true });
    const metadata = h("textarea", { rows: 3, class: "code", spellcheck: "false", value: JSON.stringify(before.metadata ?? {}) });
    const submit = async () => {
      const changed = { id: id.value, title: heading.value || null, text: text.value, metadata: metadataOf(metadata.value) };
      return api("PUT", collectionPath(this._collection, "documents"), { json: { documents: [changed], ...conditions } });
    };
    const controls = [field(t("documents.id"), id), field(t("documents.documentTitle"), heading), field(t("documents.text"), text), field(t("documents.metadata"), metadata)];
    const written = await ask({ title, controls, action: t("save"), submit });
    if (written === null) return;
    remark(t(written.truncated ? "documents.cut" : "documents.saved", { position: positionText(written.position) }));
    await this.load();
  }

  async _delete(found) {
    const doIt = () => api("POST", collectionPath(this._collection, "documents", "delete"), { json: { ids: [found.id] } });
    if (!(await confirmed(t("documents.confirm", { id: found.id }), t("documents.confirmText"), t("delete"), doIt))) return;
    remark(t("documents.deleted", { id: found.id }));
    await this.load();
  }
}

/** A position: a number, or behind a router a text of one for each shard. */
function positionText(position) {
  return typeof position === "number" ? number(position) : position;
}

function metadataOf(text) {
  let value;
  try {
    value = jsonOf(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw new InputError(t("documents.badMetadata", { problem: error.message }));
  }
  if (!isObject(value)) throw new InputError(t("documents.badMetadata", { problem: text }));
  return value;
}

/** The address of a collection's documents. */
export function documentsOf(collection) {
  return addressOf("documents", { c: collection });
}
