// What happened, in words: errors with what can be done about them, and short remarks.

import { button, h, replace } from "./dom.js";
import { explained } from "./errors.js";
import { t } from "./language.js";

/** An error, with a button that tries again; where the server named a time to wait, only after it. */
export function errorNotice(error, retry = null) {
  const { title, text, retryAfter = null } = explained(error);
  const actions = h("div", { class: "row" });
  if (retry !== null) actions.append(retryButton(retry, retryAfter));
  return h("div", { class: "notice error", role: "alert" }, h("strong", { text: title }), text && h("p", { text }), actions);
}

function retryButton(retry, seconds) {
  const element = button(t("retry"), retry);
  if (seconds === null) return element;
  let left = seconds;
  const count = () => {
    element.disabled = left > 0;
    element.textContent = left > 0 ? t("retryIn", { seconds: left }) : t("retry");
    if (left > 0) setTimeout(count, 1000);
    left -= 1;
  };
  count();
  return element;
}

/** Something to say where there is nothing to show, with what to do first. */
export function emptyNotice(title, text = null, ...actions) {
  return h("div", { class: "notice empty" }, h("strong", { text: title }), text && h("p", { text }), h("div", { class: "row" }, actions));
}

const remarks = h("div", { class: "remarks", role: "status", "aria-live": "polite" });

/** Where remarks appear; once on the page. */
export function remarksElement() {
  return remarks;
}

/** Says something for some seconds. */
export function remark(text) {
  const element = h("p", { text });
  remarks.append(element);
  setTimeout(() => element.remove(), 6000);
}

/** Copies a text, and says so. Browsers give pages without TLS the old way alone. */
export async function copyText(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    const area = h("textarea", { value: text, class: "visually-hidden", "aria-hidden": "true" });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  remark(t("search.copied"));
}

/** Runs what may fail into this place: the error takes the place of what is there, and goes when it is tried again. */
export async function attempted(place, action) {
  try {
    replace(place);
    return await action();
  } catch (error) {
    if (error.name !== "AbortError") replace(place, errorNotice(error));
    return undefined;
  }
}
