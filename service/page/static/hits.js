// One hit: its score in parts, its text with the matching words, and why it is there.

import { explanationElement } from "./alignment.js";
import { button, chips, h, replace, uniqueId, webLink } from "./dom.js";
import { number, t } from "./language.js";
import { markdownElements } from "./markdown.js";
import { SIDES } from "./weights.js";

const EXCERPT = 280; // characters of a text that are shown at first
const BEFORE = 60; // of them before the first match

// What the line of its place says already.
const OF_PLACE = ["source", "anchor", "headings", "start", "end", "page", "last_page"];
const BETWEEN = " › ";

/** Positions in code points as ones in a string of JavaScript. */
function unitsOf(text) {
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  return units;
}

/** A text with what matches. highlights: in code points. */
class MarkedText {
  constructor(text, highlights) {
    this.text = text;
    this.units = unitsOf(text);
    this.highlights = highlights ?? [];
  }

  /** The nodes between two positions of the string. */
  nodes(from, to) {
    const parts = [];
    let at = from;
    for (const each of this.highlights) {
      const [start, end] = [Math.max(at, this.units[each.start]), Math.min(to, this.units[each.end])];
      if (start >= end) continue;
      parts.push(this.text.slice(at, start), h("mark", { text: this.text.slice(start, end) }));
      at = end;
    }
    parts.push(this.text.slice(at, to));
    return parts;
  }

  /** What is shown at first, in code points and as far as can be in whole words: from the first match within what matched best, or from its beginning. window: null for all of the text. */
  excerpt(window) {
    const length = this.units.length - 1;
    const [first, last] = window ? [window.start, Math.min(window.end, length)] : [0, length];
    const match = this.highlights.find(({ start, end }) => end > first && start < last)?.start ?? first;
    const start = match + BEFORE < first + EXCERPT ? first : match - BEFORE;
    const end = Math.min(last, start + EXCERPT);
    const [begun = ""] = (start > first && /^\S{1,20}\s/.exec(this._slice(start, end))) || [];
    const [broken = ""] = (end < last && /\s\S{0,20}$/.exec(this._slice(start, end))) || [];
    return { start: start + [...begun].length, end: end - [...broken].length };
  }

  _slice(start, end) {
    return this.text.slice(this.units[start], this.units[end]);
  }
}

/** Where a hit comes from, as its source and anchor say; null where they do not. */
function placeOf({ source, anchor }) {
  if (typeof source !== "string" || source === "") return null;
  return typeof anchor === "string" && anchor !== "" ? `${source}#${anchor}` : source;
}

/** A place as a link where it is an address of the web, else as text. */
function placeElement(place) {
  return webLink(place, place) ?? h("span", { class: "source", text: place });
}

/** What a passage says of its place within the source: the headings above it, its pages and its characters. */
function withinElements({ headings, start, end, page, last_page: last }) {
  const path = Array.isArray(headings) ? headings.filter((each) => typeof each === "string").join(BETWEEN) : "";
  const pages = Number.isInteger(last) && last > page ? t("hit.pages", { first: number(page), last: number(last) }) : t("hit.page", { page });
  return [
    path !== "" && h("span", { class: "headings", text: path }),
    Number.isInteger(page) && h("span", { text: pages }),
    Number.isInteger(start) && Number.isInteger(end) && h("span", { text: t("hit.characters", { start: number(start), end: number(end) }) }),
  ];
}

/** The line of a hit's place: its collection, where several were searched, its source, and where in it; null where there is none. */
function lineOfPlace({ collection, metadata }, place) {
  const parts = [collection && h("span", { class: "collection", text: t("hit.collection", { collection }) }), ...(place === null ? [] : [placeElement(place), ...withinElements(metadata)])];
  return parts.some(Boolean) ? h("p", { class: "place" }, parts) : null;
}

/** How sure the search is that a hit answers, in whole percent; null where that is not known. */
function sureness(confidence) {
  return typeof confidence === "number" ? h("span", { class: "hint confidence", title: t("hit.confidenceHint"), text: t("hit.confidence", { percent: number(Math.round(100 * confidence)) }) }) : null;
}

/** The element of a hit; `update` moves its bar to other weights. */
export class HitElement {
  /** examples: whether it came by examples; exampled: called with "like" or "unlike" and its id. */
  constructor(hit, explanationProblem, examples, exampled) {
    this.hit = hit;
    this._explanationProblem = explanationProblem;
    this._rank = h("span", { class: "rank" });
    this._score = h("span", { class: "score" });
    this._bar = h("div", { class: "bar", role: "img" });
    this._parts = h("dl", { class: "parts" });
    this._text = h("div", { class: "text" });
    this._marked = new MarkedText(hit.text, hit.highlights);
    this._end = this._marked.units.length - 1;
    this._excerpt = this._marked.excerpt(hit.window);
    const id = uniqueId("why");
    this._why = h("div", { id, class: "why", hidden: true });
    this._toggle = button(t("hit.why"), () => this.toggle(), { class: "quiet", "aria-expanded": "false", "aria-controls": id, "aria-label": t("hit.whyOf", { id: hit.id }) });
    this._more = button(t("hit.more"), () => this._showAll(), { class: "quiet" });
    this._more.hidden = this._excerpt.start === 0 && this._excerpt.end === this._end;
    this._showText(this._excerpt);
    const title = hit.title ? new MarkedText(hit.title, hit.title_highlights).nodes(0, hit.title.length) : hit.id;
    const place = placeOf(hit.metadata ?? {});
    const heading = h("h3", {}, this._rank, h("span", { class: "title" }, title), hit.title && hit.id !== place ? h("span", { class: "id", text: hit.id }) : null);
    const metadata = Object.entries(hit.metadata ?? {}).filter(([name]) => place === null || !OF_PLACE.includes(name));
    const like = (side, name) => button(t(name), () => exampled(side, hit.id), { class: "quiet", "aria-label": `${t(name)}: ${hit.id}` });
    const part = hit.window && (hit.window.start > 0 || hit.window.end < this._end);
    this.element = h(
      "li",
      { class: "hit", tabindex: -1, data: { id: hit.id } },
      h("div", { class: "head" }, heading, this._bar, sureness(hit.confidence), this._score),
      lineOfPlace(hit, place),
      part ? h("p", { class: "hint", text: t("hit.window", { start: number(hit.window.start), end: number(hit.window.end) }) }) : null,
      this._text,
      h("div", { class: "row foot" }, this._parts, chips(metadata), h("div", { class: "row" }, this._toggle, this._more, like("like", "like.more"), examples ? like("unlike", "like.less") : null)),
      this._why,
    );
  }

  /** Shows a part of its text, given in code points, with what matches marked. */
  _showText({ start, end }) {
    const { text, units } = this._marked;
    this._text.classList.toggle("begun", start > 0);
    this._text.classList.toggle("unended", end < this._end);
    replace(this._text, markdownElements(text, units[start], units[end], (from, to) => this._marked.nodes(from, to)));
  }

  /** Opens or closes the reasons. */
  toggle() {
    const open = this._why.hidden;
    if (open && !this._why.hasChildNodes()) {
      const { explanation } = this.hit;
      this._why.append(explanation ? explanationElement(explanation) : h("p", { class: "hint", text: t("hit.noExplanation", { reason: this._explanationProblem ?? "" }) }));
    }
    this._why.hidden = !open;
    this._toggle.setAttribute("aria-expanded", String(open));
  }

  /** Closes the reasons; whether they were open. */
  close() {
    if (this._why.hidden) return false;
    this.toggle();
    return true;
  }

  /** Draws its place and score under these weights. summed: whether the score is their sum, which the bar shows; it is full where each side has 1. */
  update(rank, score, weights, summed) {
    this._rank.textContent = rank;
    this._score.textContent = number(score, 3);
    this._score.title = t("hit.score", { score });
    const parts = SIDES.filter((side) => side in this.hit.scores && (side !== "bm25" || weights.bm25 > 0)).map((side) => ({ side, raw: this.hit.scores[side], weight: weights[side] ?? 0 }));
    if (this.hit.scores.boost) parts.push({ side: "boost", raw: this.hit.scores.boost, weight: 1 });
    this._bar.hidden = !summed;
    this._bar.title = t("hit.scale");
    const lengths = parts.map(({ raw, weight }) => Math.max(0, weight * (raw ?? 0)));
    const sum = (values) => values.reduce((total, each) => total + each, 0);
    const full = Math.max(sum(SIDES.map((side) => weights[side] ?? 0)), sum(lengths));
    replace(
      this._bar,
      parts.map(({ side }, place) => {
        const piece = h("span", { class: `piece side-${side}` });
        piece.style.width = `${full > 0 ? (lengths[place] / full) * 100 : 0}%`;
        return piece;
      }),
    );
    const described = parts.map(({ side, raw, weight }) => `${t(`side.${side}`)} ${raw === null ? "–" : number(raw, 3)}${weight === 1 ? "" : ` × ${number(weight, 2)}`}`);
    this._bar.setAttribute("aria-label", `${t("hit.parts")}: ${described.join(", ")}`);
    replace(
      this._parts,
      parts.map(({ side }, place) => h("div", {}, h("dt", {}, h("span", { class: `swatch side-${side}` }), t(`side.${side}`)), h("dd", { text: described[place].slice(t(`side.${side}`).length + 1) }))),
    );
  }

  _showAll() {
    this._whole = !this._whole;
    this._more.textContent = t(this._whole ? "hit.less" : "hit.more");
    this._showText(this._whole ? { start: 0, end: this._end } : this._excerpt);
  }
}
