// The fields of a collection: their types, how many documents have them, and their commonest values.

import { addressOf } from "../address.js";
import { api, collectionPath } from "../api.js";
import { ask } from "../dialogs.js";
import { button, field as labelled, h, replace, select } from "../dom.js";
import { COUNTED, facetsOf, KINDS } from "../facets.js";
import { filterText } from "../filters.js";
import { number, t } from "../language.js";
import { errorNotice, remark } from "../notices.js";

const VALUES = 6; // of each field

/** The section of a collection's fields. signal: ends its requests. */
export class FieldsSection {
  constructor(collection, signal) {
    this._name = collection.name;
    this._fields = collection.fields;
    this._signal = signal;
    this._place = h("div");
    const declare = button(t("fields.declare"), () => this._declare(), { class: "quiet", "aria-label": `${t("fields.declare")}: ${this._name}` });
    this.element = h("section", {}, h("div", { class: "row spread" }, h("h3", { text: t("collections.declared") }), declare), this._place);
  }

  async load() {
    const names = Object.keys(this._fields);
    if (names.length === 0) {
      replace(this._place, h("p", { class: "hint", text: t("filters.none") }));
      return;
    }
    try {
      const facets = await facetsOf(this._name, names.filter((name) => COUNTED.includes(this._fields[name])), VALUES, null, this._signal);
      const counts = await Promise.all(names.map((name) => this._count(name)));
      replace(this._place, fieldsTable(this._name, names.map((name, place) => ({ name, kind: this._fields[name], count: counts[place], facet: facets[name] }))));
    } catch (error) {
      if (error.name !== "AbortError") replace(this._place, errorNotice(error, () => this.load()));
    }
  }

  async _count(name) {
    const json = { filter: { exists: name } };
    return (await api("POST", collectionPath(this._name, "documents", "count"), { json, signal: this._signal })).count;
  }

  async _declare() {
    const name = h("input", { required: true, maxlength: 64, spellcheck: "false", autofocus: true });
    const kind = select(KINDS.map((each) => [each, each]), "keyword");
    const submit = () => api("POST", collectionPath(this._name, "fields"), { json: { fields: { [name.value.trim()]: kind.value } } });
    const controls = [labelled(t("boosts.field"), name), labelled(t("fields.kind"), kind)];
    const changed = await ask({ title: t("fields.declareIn", { name: this._name }), text: t("fields.declareText"), controls, action: t("fields.declare"), submit });
    if (changed === null) return;
    this._fields = changed.fields;
    remark(t("fields.declared", { name: name.value.trim() }));
    await this.load();
  }
}

function fieldsTable(collection, rows) {
  const headings = [t("boosts.field"), t("fields.kind"), t("collections.documents"), t("fields.values")];
  const link = (name, { value, count }) => {
    const f = filterText({ [name]: { eq: [value] } });
    return h("li", {}, h("a", { href: addressOf("documents", { c: collection, f }), text: `${value}` }), ` ${number(count)}`);
  };
  const values = ({ name, facet }) => {
    if (!facet) return "–";
    const more = facet.distinct - facet.values.length;
    return h("ul", { class: "chips" }, facet.values.map((each) => link(name, each)), more > 0 ? h("li", { text: t("fields.more", { count: number(more) }) }) : null);
  };
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `${t("collections.declared")}: ${collection}` },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, headings.map((each) => h("th", { scope: "col", text: each })))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row", text: row.name }), h("td", { text: row.kind }), h("td", { text: number(row.count) }), h("td", {}, values(row))))),
    ),
  );
}
