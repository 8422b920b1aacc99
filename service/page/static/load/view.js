// The view of loading files: they are read here, in pieces, and sent as documents in batches.

import { writeAddress } from "../address.js";
import { api, collectionPath } from "../api.js";
import { button, chips, field, h, replace, select } from "../dom.js";
import { InputError } from "../errors.js";
import { KINDS } from "../fields.js";
import { bytes, number, t } from "../language.js";
import { errorNotice, remark } from "../notices.js";
import { documentOf, guessedColumns, KEPT, namesOf } from "./columns.js";
import { kindOf } from "./kinds.js";
import { Run } from "./run.js";
import { columnControls, sourceControls, usesTable } from "./settings.js";
import { ACCEPTED, chosenFiles, droppedFiles, placeOf, Source } from "./source.js";

const SAMPLE = 200; // records that tell what the columns are
const PREVIEWED = 3;
const EXCERPT = 300; // characters
const MOST_TITLE = 100;
const TEXT_COLUMNS = { text: "text", title: "title", id: "id" }; // of files of text

/** Shows the view. signal: ends a loading when it is left. */
export async function show(root, values, signal) {
  const { collections } = await api("GET", "/collections", { signal });
  writeAddress("load", { c: values.get("c") });
  new LoadView(root, collections, values.get("c"), signal);
}

class LoadView {
  constructor(root, collections, chosen, signal) {
    this._collections = new Map(collections.map((each) => [each.name, each]));
    this._target = this._collections.has(chosen) ? chosen : "";
    this._signal = signal;
    this._settings = h("div", { class: "stack" });
    this._outcome = h("div");
    const zone = this._zone();
    document.addEventListener("dragover", (event) => (event.preventDefault(), zone.classList.add("over")), { signal });
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && zone.classList.remove("over"), { signal });
    document.addEventListener(
      "drop",
      (event) => {
        event.preventDefault();
        zone.classList.remove("over");
        this._take(droppedFiles(event.dataTransfer));
      },
      { signal },
    );
    replace(root, h("h1", { text: t("load.title") }), zone, this._settings, this._outcome);
  }

  /** Where files are dropped, or chosen. */
  _zone() {
    const chooser = (attributes) => {
      const input = h("input", { type: "file", hidden: true, ...attributes });
      input.addEventListener("change", () => this._take(Promise.resolve(chosenFiles(input))).then(() => (input.value = "")));
      return input;
    };
    const files = chooser({ multiple: true, accept: ACCEPTED, "aria-label": t("load.chooseFiles") });
    const folder = chooser({ webkitdirectory: true, "aria-label": t("load.chooseFolder") });
    return h("div", { class: "drop" }, h("p", {}, h("strong", { text: t("load.drop") })), h("p", { class: "hint", text: t("load.kinds") }), h("div", { class: "row" }, button(t("load.chooseFiles"), () => files.click(), { class: "primary" }), button(t("load.chooseFolder"), () => folder.click()), files, folder));
  }

  /** Looks at what was dropped. */
  async _take(given) {
    if (this._running) {
      remark(t("load.running"));
      return;
    }
    replace(this._outcome);
    replace(this._settings, h("p", { class: "hint", text: t("load.reading") }));
    try {
      this._source = new Source(await given);
      await this._source.find(this._signal);
      await this._look();
    } catch (error) {
      if (error.name !== "AbortError") replace(this._settings, errorNotice(error));
    }
  }

  /** Reads the first records. */
  async _look() {
    const looked = this._source;
    this._sample = [];
    for await (const item of looked.records()) if (this._sample.push(item) >= SAMPLE) break;
    const records = this._sample.map((each) => each.record).filter(Boolean);
    this._names = namesOf(this._sample);
    this._columns = looked.texts ? TEXT_COLUMNS : guessedColumns(this._names);
    this._values = {};
    const all = {};
    for (const record of records) {
      for (const [name, value] of Object.entries({ ...record, ...record.metadata })) {
        if (value === null || value === undefined) continue;
        this._values[name] ??= value;
        (all[name] ??= []).push(value);
      }
    }
    this._kinds = Object.fromEntries(this._names.map((name) => [name, kindOf(all[name] ?? [], looked.cells)]));
    this._setUses();
    this._draw();
  }

  /** What becomes of the columns at first: a new collection declares those whose type is plain, and of texts `source`. */
  _setUses() {
    const kinds = this._target !== "" ? {} : this._source.texts ? { source: "keyword" } : this._kinds;
    this._uses = Object.fromEntries(this._names.map((name) => [name, kinds[name] ?? KEPT]));
  }

  /** The types of fields by name, as the collection has or shall have them. */
  _fields() {
    if (this._target !== "") return this._collections.get(this._target).fields;
    const own = Object.values(this._columns);
    return Object.fromEntries(Object.entries(this._uses).filter(([name, use]) => KINDS.includes(use) && !own.includes(name)));
  }

  /** What makes documents of records, as it is chosen now. */
  _maker() {
    const [columns, uses, fields, { cells }] = [this._columns, { ...this._uses }, this._fields(), this._source];
    return (record) => documentOf(record, columns, uses, fields, cells);
  }

  _draw() {
    const source = this._source;
    const facts = [t("load.files", { count: number(source.files.length), size: bytes(source.bytes) }), source.leftOut ? t("load.skipped", { count: number(source.leftOut) }) : null];
    this._preview = h("section", {});
    const problem = h("div");
    const parts = [
      h("h2", {}, source.title, h("span", { class: "id", text: facts.filter(Boolean).join(" · ") })),
      this._targetControls(),
      sourceControls(source, (options) => {
        Object.assign(source.options, options);
        this._look().catch((error) => replace(this._preview, errorNotice(error)));
      }),
      source.texts ? null : this._columnParts(),
      this._preview,
      problem,
      h("div", { class: "row" }, h("button", { type: "submit", class: "primary", text: t("load.go") })),
    ];
    const submit = async (event) => {
      event.preventDefault();
      const pressed = event.submitter;
      if (pressed) pressed.disabled = true;
      try {
        await this._load();
      } catch (error) {
        if (error.name !== "AbortError") replace(problem, errorNotice(error));
        if (pressed) pressed.disabled = false;
      }
    };
    replace(this._settings, h("form", { class: "card stack", on: { submit } }, parts));
    this._drawPreview();
  }

  _targetControls() {
    const names = [...this._collections.keys()].map((name) => [name, name]);
    const target = select([["", t("load.new")], ...names], this._target);
    target.addEventListener("change", () => {
      this._target = target.value;
      this._setUses();
      this._draw();
      this._settings.querySelector("select").focus();
    });
    this._name = h("input", { value: nameOf(this._source.title), required: true, maxlength: 64, autocapitalize: "off", spellcheck: "false" });
    return h("div", { class: "fields" }, field(t("collection"), target), this._target === "" && field(t("collections.name"), this._name, t("collections.nameHint")));
  }

  _columnParts() {
    const place = h("div", { class: "stack" });
    const draw = () => {
      const own = Object.values(this._columns);
      const others = this._names.filter((name) => !own.includes(name));
      const changed = (columns) => {
        const focused = [...place.querySelectorAll("select")].indexOf(document.activeElement);
        this._columns = columns;
        draw();
        place.querySelectorAll("select")[focused]?.focus();
        this._drawPreview();
      };
      const used = (name, use) => {
        this._uses[name] = use;
        this._drawPreview();
      };
      const fields = this._target === "" ? null : this._fields();
      replace(place, columnControls(this._names, this._columns, changed), usesTable(others, this._values, this._uses, fields, used));
    };
    draw();
    return place;
  }

  _drawPreview() {
    const made = this._maker();
    const shown = this._sample.slice(0, PREVIEWED).map((item) => previewed(item, made, this._names));
    replace(this._preview, h("h3", { text: t("load.preview") }), shown.length ? h("ul", { class: "cards" }, shown) : h("p", { class: "notice", text: t("load.noRecords") }));
  }

  /** Makes the collection where it shall be new, and loads into it. */
  async _load() {
    if (this._columns.text === "") throw new InputError(t("load.needsText"));
    const made = this._maker();
    const before = this._target;
    const name = before || this._name.value.trim();
    if (before === "") {
      const json = { title: this._source.title.slice(0, MOST_TITLE), fields: this._fields() };
      this._collections.set(name, await api("PUT", collectionPath(name), { json, signal: this._signal }));
      this._target = name;
    }
    replace(this._settings);
    const run = new Run(this._outcome, this._source, name, made, this._signal);
    run.element.scrollIntoView({ block: "nearest" });
    this._running = true;
    if (await run.go()) this._target = before; // what is dropped next may be of something else
    this._running = false;
  }
}

/** The document of an item, or what is wrong with it. made: makes documents of records; names: in the order to show. */
function previewed(item, made, names) {
  try {
    if (item.problem) throw new Error(item.problem);
    const document = made(item.record);
    const text = document.text.length > EXCERPT ? `${document.text.slice(0, EXCERPT)} …` : document.text;
    const metadata = names.filter((name) => Object.hasOwn(document.metadata, name)).map((name) => [name, document.metadata[name]]);
    return h(
      "li",
      { class: "card" },
      h("h4", {}, h("span", { class: "title", text: document.title ?? document.id }), document.title ? h("span", { class: "id", text: document.id }) : null),
      h("p", { class: "text", text }),
      chips(metadata),
    );
  } catch (error) {
    return h("li", { class: "card" }, h("h4", { text: placeOf(item) }), h("p", { class: "notice", text: error.message }));
  }
}

/** A name that a collection may have, from what a file is called. */
function nameOf(title) {
  const name = title.toLowerCase().replace(/[^a-z0-9_-]+/g, "-").replace(/^[-_]+|-+$/g, "");
  return name.slice(0, 64) || "documents";
}
