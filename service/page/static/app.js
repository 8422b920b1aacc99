// The page: its frame, its views by their addresses, and the keys that work everywhere.

import { addressOf, readAddress } from "./address.js";
import { forgetKey, hasKey, onKeyNeeded } from "./api.js";
import { askForKey } from "./dialogs.js";
import { h, replace, select } from "./dom.js";
import { chooseLanguage, currentLanguage, LANGUAGES, t } from "./language.js";
import { errorNotice, remarksElement } from "./notices.js";
import * as search from "./search.js";

// Views that not everybody opens are fetched when they are opened.
const later = (path) => ({ show: async (...given) => (await import(path)).show(...given) });
const VIEWS = { search, load: later("./load/view.js"), documents: later("./documents/view.js"), collections: later("./collections/view.js"), jobs: later("./jobs/view.js"), compare: later("./compare/view.js"), embed: later("./embed/view.js"), server: later("./server/view.js") };
const THEME = "tercet-theme";
const THEMES = ["auto", "light", "dark"];

const main = h("main", { id: "main", tabindex: -1 });
const brand = h("a", { class: "brand", href: addressOf("search") }, h("img", { src: "page/icon.svg", alt: "", width: 22, height: 22 }), "Tercet");
const header = h("header", { class: "top" });
let leaving = new AbortController();

/** Draws what is around the view. */
function frame(view) {
  document.documentElement.lang = currentLanguage();
  const links = Object.keys(VIEWS).map((each) => h("li", {}, h("a", { href: addressOf(each), "aria-current": each === view ? "page" : null, text: t(`nav.${each}`) })));
  const language = select(LANGUAGES, currentLanguage(), { "aria-label": t("language") });
  language.addEventListener("change", async () => {
    await chooseLanguage(language.value);
    showView();
  });
  const theme = select(THEMES.map((each) => [each, t(`theme.${each}`)]), keptTheme(), { "aria-label": t("theme") });
  theme.addEventListener("change", () => {
    localStorage.setItem(THEME, theme.value);
    applyTheme();
  });
  const forget = hasKey() && h("button", { type: "button", class: "quiet", text: t("key.forget"), on: { click: () => (forgetKey(), location.reload()) } });
  replace(
    header,
    brand,
    h("nav", { "aria-label": t("nav") }, h("ul", {}, links)),
    h("div", { class: "row tools" }, forget, h("a", { href: "docs", text: t("api") }), language, theme),
  );
  header.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone the line scrolls
}

function keptTheme() {
  const kept = localStorage.getItem(THEME);
  return THEMES.includes(kept) ? kept : "auto";
}

function applyTheme() {
  document.documentElement.dataset.theme = keptTheme();
}

/** Shows the view of the address; requests of the one before end. */
async function showView() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { view, values } = readAddress();
  frame(view);
  document.title = `${t(`nav.${view in VIEWS ? view : "search"}`)} · Tercet`;
  replace(main, h("p", { class: "hint", text: t("loading") }));
  try {
    await (VIEWS[view] ?? search).show(main, values, signal);
    frame(view); // a key may have come
  } catch (error) {
    if (error.name !== "AbortError") replace(main, errorNotice(error, showView));
  }
}

function typing(element) {
  return element.closest?.("input, textarea, select, dialog, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  event.preventDefault();
  const input = document.getElementById("query");
  if (input) input.select();
  else location.hash = addressOf("search");
});

applyTheme();
onKeyNeeded(askForKey);
const skip = h("a", { class: "skip", href: "#main", text: t("skip"), on: { click: (event) => (event.preventDefault(), main.focus()) } });
replace(document.body, skip, header, main, remarksElement());
addEventListener("hashchange", showView);
showView();
