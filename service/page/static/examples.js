// Documents as the query: those that the hits shall be like, and unlike.

import { button, h } from "./dom.js";
import { t } from "./language.js";

/** The examples of an address's values. */
export function examplesOf(values) {
  const ids = (text) => {
    try {
      const found = JSON.parse(text || "[]");
      return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
    } catch {
      return [];
    }
  };
  const like = ids(values.get("like"));
  return { like, unlike: like.length ? ids(values.get("unlike")) : [] };
}

/** The values of an address for them. */
export function exampleValues({ like, unlike }) {
  return { like: like.length ? JSON.stringify(like) : null, unlike: unlike.length ? JSON.stringify(unlike) : null };
}

/** With one more, or one less of them; without any that it shall be like there are none. */
export function withExample(examples, side, id) {
  const other = side === "like" ? "unlike" : "like";
  const next = { [side]: [...examples[side].filter((each) => each !== id), id], [other]: examples[other].filter((each) => each !== id) };
  return next.like.length ? next : { like: [], unlike: [] };
}

/** Without one of them. */
export function withoutExample(examples, id) {
  const next = { like: examples.like.filter((each) => each !== id), unlike: examples.unlike.filter((each) => each !== id) };
  return next.like.length ? next : { like: [], unlike: [] };
}

/** What shows them. removed: called with an id. */
export function examplesElement({ like, unlike }, removed) {
  if (like.length === 0) return null;
  const chips = (ids) => ids.map((id) => button(`${id} ×`, () => removed(id), { class: "quiet", "aria-label": `${t("remove")}: ${id}` }));
  return h("div", { class: "notice examples" }, h("div", { class: "row" }, h("strong", { text: t("like.like") }), chips(like)), unlike.length ? h("div", { class: "row" }, h("strong", { text: t("like.unlike") }), chips(unlike)) : null);
}
