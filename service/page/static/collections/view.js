// The view of collections: what they hold, their backups, and how to make and delete them.

import { addressOf } from "../address.js";
import { api, collectionPath } from "../api.js";
import { ask, confirmed } from "../dialogs.js";
import { documentsOf } from "../documents/view.js";
import { button, field, h, replace } from "../dom.js";
import { InputError } from "../errors.js";
import { KINDS } from "../facets.js";
import { FieldsSection } from "./fields.js";
import { bytes, moment, number, t } from "../language.js";
import { emptyNotice, errorNotice, remark } from "../notices.js";

const LOOK = 2000; // milliseconds between two looks while segments are worked on

/** Shows the view. signal: ends its requests when it is left. */
export async function show(root, values, signal) {
  const place = h("div");
  const load = async () => {
    const { collections } = await api("GET", "/collections", { signal });
    const cards = collections.map((each) => new CollectionCard(each, signal, load, collections.length === 1));
    replace(place, cards.length ? h("ul", { class: "cards", "aria-label": t("collections.title") }, cards.map((each) => each.element)) : emptyNotice(t("search.noCollections"), t("search.noCollectionsText")));
  };
  const add = async () => {
    if (await make()) await load();
  };
  replace(root, h("div", { class: "row spread" }, h("h1", { text: t("collections.title") }), button(t("collections.add"), add, { class: "primary" })), place);
  await load();
  if (values.get("new")) await add();
}

async function make() {
  const name = h("input", { required: true, maxlength: 64, autocapitalize: "off", spellcheck: "false" });
  const fields = h("textarea", { rows: 3, class: "code", spellcheck: "false" });
  const bm25 = h("input", { type: "checkbox" });
  const window = h("input", { type: "number", min: 16 });
  const controls = [
    field(t("collections.name"), name, t("collections.nameHint")),
    field(t("collections.fields"), fields, t("collections.fieldsHint")),
    h("label", { class: "check" }, bm25, t("collections.bm25")),
    field(t("collections.window"), window, t("collections.windowHint")),
  ];
  const submit = async () => {
    const json = { fields: fieldsOf(fields.value), bm25: bm25.checked };
    if (window.value !== "") json.window = { tokens: window.valueAsNumber };
    return api("PUT", collectionPath(name.value.trim()), { json });
  };
  const made = await ask({ title: t("collections.add"), controls, action: t("collections.make"), submit });
  if (made !== null) remark(t("collections.made", { name: made.name }));
  return made !== null;
}

function fieldsOf(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(":");
      const pair = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      if (at < 1 || !KINDS.includes(pair[1])) throw new InputError(t("collections.badField", { line }));
      return pair;
    }),
  );
}

class CollectionCard {
  /** open: whether its details are shown at first. */
  constructor(collection, signal, reload, open) {
    this._name = collection.name;
    this._collection = collection;
    this._signal = signal;
    this._reload = reload;
    this._numbers = h("dl", { class: "numbers" });
    this._backups = h("div");
    this._problem = h("div");
    this._fields = new FieldsSection(collection, signal);
    const facts = [
      [t("collections.encoder"), collection.adapter ? `${collection.model} + ${collection.adapter}` : collection.model],
      [t("collections.kind"), collection.dense_kind],
      [t("collections.lexical"), collection.lexical + (collection.bm25 ? ` + BM25 (${collection.bm25_language})` : "")],
    ];
    const { defaults } = collection;
    const sides = (values) => Object.values(values).map((each) => number(each, Number.isInteger(each) ? 0 : 2)).join(", ");
    if (defaults) facts.push([t("collections.defaults"), [t("collections.defaultsText", { weights: sides(defaults.weights), candidates: sides(defaults.candidates) }), " ", button(t("collections.reset"), () => this._reset(), { class: "quiet", "aria-label": `${t("collections.reset")}: ${this._name}` })]]);
    const details = h(
      "details",
      {},
      h("summary", { text: t("collections.details") }),
      this._numbers,
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", {}, value)))),
      this._fields.element,
      h("section", {}, h("div", { class: "row spread" }, h("h3", { text: t("collections.backups") }), button(t("collections.backUp"), () => this._backUp(), { class: "quiet", "aria-label": `${t("collections.backUp")}: ${this._name}` })), this._problem, this._backups),
    );
    details.addEventListener("toggle", () => details.open && this.load());
    this.element = h(
      "li",
      { class: "card" },
      h("div", { class: "row spread" }, h("h2", {}, collection.title || this._name, collection.title ? h("span", { class: "id", text: this._name }) : null, h("span", { class: "count", text: t("jobs.documents", { done: number(collection.documents) }) })), h("div", { class: "row" }, h("a", { class: "button", href: addressOf("load", { c: this._name }), text: t("nav.load"), "aria-label": `${t("nav.load")}: ${this._name}` }), h("a", { class: "button", href: documentsOf(this._name), text: t("collections.browse"), "aria-label": `${t("collections.browse")}: ${this._name}` }), button(t("delete"), () => this._delete(), { class: "quiet", "aria-label": `${t("delete")}: ${this._name}` }))),
      details,
    );
    if (open) details.open = true;
  }

  async load() {
    await Promise.all([this._loadNumbers(), this._fields.load(), this._loadBackups()]);
  }

  async _loadNumbers() {
    try {
      const found = await api("GET", collectionPath(this._name, "stats"), { signal: this._signal });
      const size = Object.values(found.bytes).reduce((sum, each) => sum + each, 0);
      const numbers = [
        [t("collections.documents"), number(found.documents)],
        [t("collections.segments"), number(found.segments) + (found.flushing || found.merging ? ` (${t("collections.upkeep")})` : "")],
        [t("collections.size"), bytes(size)],
        [t("collections.unpublished"), number(found.unpublished.documents)],
        [t("collections.deleted"), number(found.deleted)],
      ];
      replace(this._numbers, numbers.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value }))));
      if (found.flushing || found.merging) setTimeout(() => this._signal.aborted || this._loadNumbers(), LOOK);
    } catch (error) {
      if (error.name !== "AbortError") replace(this._problem, errorNotice(error, () => this.load()));
    }
  }

  async _loadBackups() {
    try {
      const { backups } = await api("GET", collectionPath(this._name, "backups"), { signal: this._signal });
      const rows = backups.map((each) =>
        h(
          "li",
          { class: "row spread" },
          h("span", {}, `${moment(each.created_at)} · ${t("jobs.documents", { done: number(each.documents) })} · ${bytes(each.size_bytes)}`),
          h("span", { class: "row" }, button(t("collections.restore"), () => this._restore(each), { class: "quiet", "aria-label": `${t("collections.restore")}: ${each.id}` }), button(t("delete"), () => this._remove(each), { class: "quiet", "aria-label": `${t("delete")}: ${each.id}` })),
        ),
      );
      replace(this._backups, rows.length ? h("ul", { class: "plain" }, rows) : h("p", { class: "hint", text: t("collections.noBackups") }));
    } catch (error) {
      if (error.name !== "AbortError") replace(this._problem, errorNotice(error, () => this.load()));
    }
  }

  async _reset() {
    try {
      await api("DELETE", collectionPath(this._name, "defaults"));
      remark(t("collections.resetDone", { name: this._name }));
      await this._reload();
    } catch (error) {
      replace(this._problem, errorNotice(error));
    }
  }

  async _backUp() {
    try {
      const { id } = await api("POST", collectionPath(this._name, "backups"));
      replace(this._problem);
      remark(t("collections.backedUp", { id }));
      await this._loadBackups();
    } catch (error) {
      replace(this._problem, errorNotice(error));
    }
  }

  async _restore({ id }) {
    const doIt = () => api("POST", collectionPath(this._name, "backups", id, "restore"), { json: {} });
    if (!(await confirmed(t("collections.confirmRestore", { id }), t("collections.confirmRestoreText", { name: this._name }), t("collections.restore"), doIt))) return;
    remark(t("collections.restored", { name: this._name, id }));
    await this._reload();
  }

  async _remove({ id }) {
    const doIt = () => api("DELETE", collectionPath(this._name, "backups", id));
    if (await confirmed(t("collections.confirmRemove", { id }), t("collections.confirmRemoveText"), t("delete"), doIt)) await this._loadBackups();
  }

  async _delete() {
    const name = this._name;
    const typed = h("input", { autocomplete: "off", spellcheck: "false", required: true, pattern: name.replace(/[.]/g, "\\."), autofocus: true });
    const removed = await ask({
      title: t("collections.confirmDelete", { name, documents: number(this._collection.documents) }),
      text: t("collections.confirmDeleteText"),
      controls: [field(t("collections.name"), typed)],
      action: t("delete"),
      danger: true,
      submit: async () => (await api("DELETE", collectionPath(name)), true),
    });
    if (removed === null) return;
    remark(t("collections.removed", { name }));
    await this._reload();
  }
}
