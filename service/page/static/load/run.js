// A loading under way: its progress, what was refused, and how it ended.

import { addressOf } from "../address.js";
import { button, h, replace } from "../dom.js";
import { number, t } from "../language.js";
import { errorNotice } from "../notices.js";
import { Sender } from "./sending.js";
import { placeOf } from "./source.js";

const LISTED = 100; // refused records that are shown

/** Loads a source into a collection, and shows how far it is. */
export class Run {
  /** documentOf: of a record; throws what is wrong with it. signal: ends the loading. */
  constructor(place, source, collection, documentOf, signal) {
    this._source = source;
    this._collection = collection;
    this._documentOf = documentOf;
    this._cancel = new AbortController();
    this._signal = AbortSignal.any([signal, this._cancel.signal]);
    this._read = 0; // bytes
    this._written = 0;
    this._refused = 0;
    this._ids = new Set();
    this._progress = h("progress", { max: Math.max(1, source.bytes), value: 0, "aria-label": t("load.progress", { collection }) });
    this._counts = h("p", { class: "hint" });
    this._notice = h("div", { role: "status" });
    this._list = h("ul", { class: "plain" });
    this._refusals = h("section", { hidden: true }, h("h3", { text: t("load.refused") }), this._list);
    this._cancelButton = button(t("cancel"), () => this._cancel.abort());
    this.element = h("section", { class: "card" }, h("h2", { text: t("load.loading", { collection }) }), this._progress, this._counts, this._notice, h("div", { class: "row" }, this._cancelButton), this._refusals);
    replace(place, this.element);
  }

  /** Loads all of it; resolves when it has ended, to whether all was sent. */
  async go() {
    const ended = new AbortController();
    addEventListener("beforeunload", (event) => event.preventDefault(), { signal: ended.signal });
    this._count();
    try {
      await this._load();
      this._progress.value = this._progress.max;
      this._end(t("load.done", { count: number(this._written), collection: this._collection }));
      return true;
    } catch (error) {
      if (error.name === "AbortError") this._end(t("load.cancelled", { count: number(this._written) }));
      else this._end(t("load.stopped", { count: number(this._written) }), errorNotice(error));
      return false;
    } finally {
      ended.abort();
      this._cancelButton.remove();
    }
  }

  async _load() {
    const sender = new Sender(this._collection, this._signal, {
      refused: (item, message) => this._refuse(item, message),
      waiting: (seconds) => replace(this._notice, h("p", { class: "hint", text: t("load.waiting", { seconds }) })),
      written: (documents) => {
        this._written += documents;
        replace(this._notice);
        this._count();
      },
      failed: (error) => this._asked(error),
    });
    for await (const item of this._source.records((bytes) => (this._read += bytes))) {
      this._signal.throwIfAborted();
      const document = this._document(item);
      if (document !== null) await sender.add({ ...item, record: null, document });
    }
    await sender.flush();
  }

  /** The document of an item, null where it is refused here. */
  _document(item) {
    try {
      if (item.problem) throw new Error(item.problem);
      const document = this._documentOf(item.record);
      if (this._ids.has(document.id)) throw new Error(t("load.idTwice", { id: document.id }));
      this._ids.add(document.id);
      return document;
    } catch (error) {
      this._refuse(item, error.message);
      return null;
    }
  }

  /** Shows what went wrong until it shall be tried again. */
  _asked(error) {
    return new Promise((resolve, reject) => {
      this._signal.addEventListener("abort", () => reject(this._signal.reason), { once: true });
      replace(this._notice, errorNotice(error, () => (replace(this._notice), resolve())));
    });
  }

  _refuse(item, message) {
    this._refused += 1;
    this._refusals.hidden = false;
    if (this._refused <= LISTED) this._list.append(h("li", {}, h("strong", { text: placeOf(item) }), ` ${message}`));
    this._count();
  }

  _count() {
    this._progress.value = this._read;
    this._counts.textContent = t("load.counts", { written: number(this._written), refused: number(this._refused) });
  }

  _end(text, problem = null) {
    const links = [h("a", { class: "button", href: addressOf("search", { c: this._collection }), text: t("load.search") }), h("a", { class: "button", href: addressOf("documents", { c: this._collection }), text: t("collections.browse") })];
    replace(this._notice, h("p", {}, h("strong", { text })), problem, h("div", { class: "row" }, links));
  }
}
