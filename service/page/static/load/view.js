// The view of loading files: the server reads them, shows what it would make of them, and imports them.

import { writeAddress } from "../address.js";
import { api, ApiError, collectionPath } from "../api.js";
import { button, chips, field, h, replace, select } from "../dom.js";
import { InputError } from "../errors.js";
import { KINDS } from "../facets.js";
import { bytes, number, t } from "../language.js";
import { errorNotice, remark } from "../notices.js";
import { chosenFiles, droppedFiles, FileKinds, Source } from "./files.js";
import { preview } from "./importing.js";
import { Run } from "./run.js";
import { columnControls, KEPT, LEFT_OUT, sourceControls, usesTable } from "./settings.js";

const EXCERPT = 300; // characters
const MOST_TITLE = 100;

/** Shows the view. signal: ends a loading when it is left. */
export async function show(root, values, signal) {
  const [{ collections }, { files }] = await Promise.all([api("GET", "/collections", { signal }), api("GET", "/info", { signal })]);
  writeAddress("load", { c: values.get("c") });
  new LoadView(root, collections, new FileKinds(files), values.get("c"), signal);
}

class LoadView {
  constructor(root, collections, kinds, chosen, signal) {
    this._kinds = kinds;
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
    const files = chooser({ multiple: true, accept: this._kinds.accepted, "aria-label": t("load.chooseFiles") });
    const folder = chooser({ webkitdirectory: true, "aria-label": t("load.chooseFolder") });
    return h("div", { class: "drop" }, h("p", {}, h("strong", { text: t("load.drop") })), h("p", { class: "hint", text: t("load.kinds", this._kinds.words) }), h("div", { class: "row" }, button(t("load.chooseFiles"), () => files.click(), { class: "primary" }), button(t("load.chooseFolder"), () => folder.click()), files, folder));
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
      this._source = new Source(await given, this._kinds);
      this._options = { encoding: "", delimiter: "", split: this._source.headed ? "markdown" : "" };
      this._name = h("input", { value: nameOf(this._source.title), required: true, maxlength: 64, autocapitalize: "off", spellcheck: "false" });
      this._found = this._columns = null;
      await this._look();
      this._draw();
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(this._settings, errorNotice(error));
      // Of texts another encoding or another cut may help.
      if (this._source?.texts && error instanceof ApiError) this._draw(errorNotice(error));
    }
  }

  /** Asks what the files hold, with columns as they are guessed. */
  async _look() {
    await this._ask(null);
    this._chosen = {};
    const { problem, options } = this._found;
    this._columns = { text: options.text_field ?? "", title: options.title_field ?? "", id: options.id_field ?? "" };
    this._guessed = this._source.texts || this._columns.text !== "" ? "" : longestColumn(this._found.columns, this._columns);
    this._columns.text ||= this._guessed;
    if (this._guessed || (problem && options.id_field === null)) await this._ask(); // without a column of ids they are made of the content
  }

  /** Asks what an import would read as all is chosen now; of several questions the last one counts. */
  async _ask(columns = this._columns) {
    this._asking?.abort();
    this._asking = new AbortController();
    const signal = AbortSignal.any([this._signal, this._asking.signal]);
    this._found = await preview(this._target || nameOf(this._source.title), this._source, this._parameters(columns), signal);
  }

  /** The parameters of an import, as all is chosen now. columns: null where they are to be guessed. */
  _parameters(columns = this._columns) {
    const chosen = Object.entries(this._options).filter(([, value]) => value !== "");
    if (this._source.texts || columns === null) return chosen;
    const { text, title, id } = columns;
    if (text) chosen.push(["text_field", text]);
    if (title) chosen.push(["title_field", title]);
    chosen.push(id ? ["id_field", id] : ["generate_ids", "true"]);
    for (const { name } of this._others()) if (this._use(name) === LEFT_OUT) chosen.push(["no_metadata_field", name]);
    return chosen;
  }

  /** The columns that are neither text nor title nor id. */
  _others() {
    const own = Object.values(this._columns);
    return this._found.columns.filter(({ name }) => !own.includes(name));
  }

  /** What becomes of a column: as it is chosen, or a field of a new collection where its type is plain. */
  _use(name) {
    const { type } = this._found.columns.find((each) => each.name === name);
    return this._chosen[name] ?? (this._target === "" ? type : null) ?? KEPT;
  }

  /** The types of fields by name, as the collection has or shall have them. */
  _fields() {
    if (this._target !== "") return this._collections.get(this._target).fields;
    const source = this._source.texts || this._options.split ? { source: "keyword" } : {};
    if (this._source.texts) return source;
    const uses = this._others().map(({ name }) => [name, this._use(name)]);
    return { ...Object.fromEntries(uses.filter(([, use]) => KINDS.includes(use))), ...source };
  }

  /** Draws what may be chosen. problem: shown instead of the documents. */
  _draw(problem = null) {
    const source = this._source;
    const facts = [t("load.files", { count: number(source.files.length), size: bytes(source.bytes) }), source.leftOut ? t("load.skipped", { count: number(source.leftOut) }) : null];
    this._preview = h("section", {});
    this._columnPlace = h("div", { class: "stack" });
    const failure = h("div");
    const changed = (options) => {
      Object.assign(this._options, options);
      this._again(() => this._look());
    };
    const parts = [
      h("h2", {}, source.title, h("span", { class: "count", text: facts.filter(Boolean).join(" · ") })),
      this._targetControls(),
      sourceControls(source, this._found?.options ?? null, this._options, changed),
      this._columnPlace,
      this._preview,
      failure,
      h("div", { class: "row" }, h("button", { type: "submit", class: "primary", text: t("load.go") })),
    ];
    const submit = async (event) => {
      event.preventDefault();
      const pressed = event.submitter;
      if (pressed) pressed.disabled = true;
      try {
        await this._load();
      } catch (error) {
        if (error.name !== "AbortError") replace(failure, errorNotice(error));
        if (pressed) pressed.disabled = false;
      }
    };
    replace(this._settings, h("form", { class: "card stack", on: { submit } }, parts));
    if (problem) replace(this._preview, problem);
    else this._drawFound();
  }

  _targetControls() {
    const names = [...this._collections.keys()].map((name) => [name, name]);
    const target = select([["", t("load.new")], ...names], this._target);
    const name = h("div", { hidden: this._target !== "" }, field(t("collections.name"), this._name, t("collections.nameHint")));
    target.addEventListener("change", () => {
      this._target = target.value;
      name.hidden = this._target !== "";
      this._name.disabled = this._target !== ""; // a hidden control is not to be filled
      this._chosen = {};
      this._again(() => this._ask());
    });
    this._name.disabled = this._target !== "";
    return h("div", { class: "fields" }, field(t("collection"), target), name);
  }

  /** Asks anew, and draws the answer; what cannot be read is said in the place of the documents. */
  async _again(asked) {
    try {
      await asked();
      this._drawFound();
    } catch (error) {
      if (error.name !== "AbortError") replace(this._preview, errorNotice(error));
    }
  }

  /** Draws the columns and the first documents; what has the focus keeps it. */
  _drawFound() {
    const focused = [...this._columnPlace.querySelectorAll("select")].indexOf(document.activeElement);
    replace(this._columnPlace, this._source.texts ? null : this._columnParts());
    this._columnPlace.querySelectorAll("select")[focused]?.focus();
    const { columns, documents, problem, reasons } = this._found;
    const needsText = !this._source.texts && this._columns.text === "";
    const said = needsText ? [t("load.needsText")] : problem ? [problem] : reasons;
    const names = columns.map(({ name }) => name);
    const cards = documents.map((each) => previewed(each, names));
    const notices = said.map((text) => h("li", { class: "card" }, h("p", { class: "notice", text })));
    replace(this._preview, h("h3", { text: t("load.preview") }), h("ul", { class: "cards" }, cards, notices));
  }

  _columnParts() {
    const changed = (columns) => {
      this._columns = columns;
      this._again(() => this._ask());
    };
    const used = (name, use) => {
      this._chosen[name] = use;
      this._again(() => this._ask());
    };
    const others = this._others();
    const uses = Object.fromEntries(others.map(({ name }) => [name, this._use(name)]));
    const guessed = this._guessed && this._columns.text === this._guessed ? h("p", { class: "notice", text: t("load.guessed", { column: this._guessed }) }) : null;
    return [guessed, columnControls(this._found.columns.map(({ name }) => name), this._columns, changed), usesTable(others, uses, this._target === "" ? null : this._fields(), used)];
  }

  /** Makes the collection where it shall be new, and loads into it. */
  async _load() {
    if (!this._source.texts && !this._columns?.text) throw new InputError(t("load.needsText"));
    const parameters = this._parameters();
    const before = this._target;
    const name = before || this._name.value.trim();
    if (before === "") {
      const json = { title: this._source.title.slice(0, MOST_TITLE), fields: this._fields() };
      this._collections.set(name, await api("PUT", collectionPath(name), { json, signal: this._signal }));
      this._target = name;
    }
    replace(this._settings);
    const run = new Run(this._outcome, this._source, name, parameters, this._signal);
    run.element.scrollIntoView({ block: "nearest" });
    this._running = true;
    if (await run.go()) this._target = before; // what is dropped next may be of something else
    this._running = false;
  }
}

/** The card of a document. names: of metadata, in the order to show. */
function previewed({ id, title, text, metadata }, names) {
  const shown = text.length > EXCERPT ? `${text.slice(0, EXCERPT)} …` : text;
  const known = names.filter((name) => Object.hasOwn(metadata, name));
  const others = Object.keys(metadata).filter((name) => !names.includes(name));
  return h(
    "li",
    { class: "card" },
    h("h4", {}, h("span", { class: "title", text: title ?? id }), title ? h("span", { class: "id", text: id }) : null),
    h("p", { class: "text", text: shown }),
    chips([...known, ...others].map((name) => [name, metadata[name]])),
  );
}

/** The column whose values are the longest texts, empty where none has texts. own: the columns of title and id. */
function longestColumn(columns, { title, id }) {
  const length = ({ name, samples }) => (name === title || name === id ? 0 : samples.reduce((sum, each) => sum + (typeof each === "string" && Number.isNaN(Number(each)) ? each.length : 0), 0) / samples.length || 0);
  const best = columns.reduce((most, each) => (length(each) > length(most) ? each : most), { name: "", samples: [] });
  return best.name;
}

/** A name that a collection may have, from what a file is called. */
function nameOf(title) {
  const name = title.toLowerCase().replace(/[^a-z0-9_-]+/g, "-").replace(/^[-_]+|-+$/g, "");
  return name.slice(0, 64) || "documents";
}
