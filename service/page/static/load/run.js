// A loading under way: its progress, what was refused, and how it ended.

import { addressOf } from "../address.js";
import { ApiError } from "../api.js";
import { button, h, replace } from "../dom.js";
import { number, t } from "../language.js";
import { errorNotice } from "../notices.js";
import { imported } from "./importing.js";

const LISTED = 100; // refused records that are shown
const REFUSED = [400, 413, 422]; // what is wrong with a file itself
const BUSY = [429, 503];
const TRIES = 20;

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

/** Loads files into a collection, one after the other, and shows how far it is. */
export class Run {
  /** parameters: of each import. signal: ends the loading. */
  constructor(place, source, collection, parameters, signal) {
    this._source = source;
    this._collection = collection;
    this._parameters = parameters;
    this._cancel = new AbortController();
    this._signal = AbortSignal.any([signal, this._cancel.signal]);
    this._before = { bytes: 0, documents: 0, skipped: 0 }; // of files that are done
    this._written = 0;
    this._listed = 0;
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
    this._count({ documents: 0, skipped: 0, fraction: 0 }, 0);
    try {
      for (const each of this._source.files) await this._load(each);
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

  /** Loads a file, again where the server is busy or gone: documents replace those with the same ids. */
  async _load({ name, file }) {
    for (let tries = 1; ; tries += 1) {
      try {
        await this._send({ name, file });
        return;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (REFUSED.includes(error.status)) {
          if (this._source.files.length === 1) throw error;
          this._refuse([error.message]);
          this._before.skipped += 1;
          this._before.bytes += file.size;
          this._count({ documents: 0, skipped: 0, fraction: 0 }, 0);
          return;
        }
        if (BUSY.includes(error.status) && tries % TRIES !== 0) {
          const seconds = error.retryAfter ?? 2;
          replace(this._notice, h("p", { class: "hint", text: t("load.waiting", { seconds }) }));
          await wait(seconds, this._signal);
        } else await this._asked(error);
      }
    }
  }

  async _send(each) {
    replace(this._notice, h("p", { class: "hint", text: t("load.sending", { file: each.name }) }));
    let last = null;
    for await (const line of imported(this._collection, each, this._parameters, this._signal)) {
      if (last === null) replace(this._notice);
      last = line;
      this._count(line, each.file.size);
    }
    this._refuse(last.reasons);
    this._before = { bytes: this._before.bytes + each.file.size, documents: this._before.documents + last.documents, skipped: this._before.skipped + last.skipped };
  }

  /** Shows what went wrong until it shall be tried again. */
  _asked(error) {
    return new Promise((resolve, reject) => {
      this._signal.addEventListener("abort", () => reject(this._signal.reason), { once: true });
      replace(this._notice, errorNotice(error, () => (replace(this._notice), resolve())));
    });
  }

  _refuse(reasons) {
    if (reasons.length) this._refusals.hidden = false;
    for (const reason of reasons) if ((this._listed += 1) <= LISTED) this._list.append(h("li", { text: reason }));
  }

  /** Shows how much is done: files before, and so much of one. */
  _count({ documents, skipped, fraction }, size) {
    this._written = this._before.documents + documents;
    this._progress.value = this._before.bytes + fraction * size;
    const refused = this._before.skipped + skipped;
    const share = this._progress.value / this._progress.max;
    const counts = { written: number(this._written), refused: number(refused) };
    this._counts.textContent = share > 0 && share < 1 ? t("load.of", { ...counts, total: number(Math.round((this._written + refused) / share)) }) : t("load.counts", counts);
  }

  _end(text, problem = null) {
    const links = [h("a", { class: "button", href: addressOf("search", { c: this._collection }), text: t("load.search") }), h("a", { class: "button", href: addressOf("documents", { c: this._collection }), text: t("collections.browse") })];
    replace(this._notice, h("p", {}, h("strong", { text })), problem, h("div", { class: "row" }, links));
  }
}
