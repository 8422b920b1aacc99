// One hit: its score in parts, its text with the matching words, and why it is there.

import { explanationElement } from "./alignment.js";
import { button, chips, h, replace, uniqueId } from "./dom.js";
import { number, t } from "./language.js";
import { SIDES } from "./weights.js";

const EXCERPT = 600; // characters of a text that are shown at first

// What the line of its place says already.
const OF_PLACE = ["source", "anchor", "headings", "start", "end", "page", "last_page"];
const BETWEEN = " › ";

/** What is shown of a text at first: the passage that matched best, or its beginning. In code points. */
function excerptOf(hit) {
  const characters = Array.from(hit.text);
  const [start, end] = hit.window ? [hit.window.start, hit.window.end] : [0, characters.length];
  const stop = Math.min(end, start + EXCERPT);
  return { characters: characters.slice(start, stop), start, before: start > 0, after: stop < characters.length };
}

/** Characters with the highlights of the whole text marked. start: where the characters begin in it. */
function marked(characters, start, highlights) {
  const parts = [];
  let at = 0;
  for (const each of highlights ?? []) {
    const [from, to] = [Math.max(at, each.start - start), Math.min(characters.length, each.end - start)];
    if (from >= to) continue;
    parts.push(characters.slice(at, from).join(""), h("mark", { text: characters.slice(from, to).join("") }));
    at = to;
  }
  parts.push(characters.slice(at).join(""));
  return parts;
}

/** Where a hit comes from, as its source and anchor say; null where they do not. */
function placeOf({ source, anchor }) {
  if (typeof source !== "string" || source === "") return null;
  return typeof anchor === "string" && anchor !== "" ? `${source}#${anchor}` : source;
}

/** A place as a link where it is an address of the web, else as text. */
function placeElement(place) {
  const web = URL.canParse(place) && ["http:", "https:"].includes(new URL(place).protocol);
  return web ? h("a", { href: place, target: "_blank", rel: "noopener noreferrer", text: place }) : h("span", { class: "source", text: place });
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
    this._text = h("p", { class: "text" });
    const id = uniqueId("why");
    this._why = h("div", { id, class: "why", hidden: true });
    this._toggle = button(t("hit.why"), () => this.toggle(), { class: "quiet", "aria-expanded": "false", "aria-controls": id, "aria-label": t("hit.whyOf", { id: hit.id }) });
    this._more = button(t("hit.more"), () => this._showAll(), { class: "quiet" });
    const excerpt = excerptOf(hit);
    this._more.hidden = !(excerpt.before || excerpt.after);
    this._showText(excerpt);
    const title = hit.title ? marked(Array.from(hit.title), 0, hit.title_highlights) : hit.id;
    const place = placeOf(hit.metadata ?? {});
    const heading = h("h3", {}, this._rank, h("span", { class: "title" }, title), hit.title && hit.id !== place ? h("span", { class: "id", text: hit.id }) : null);
    const metadata = Object.entries(hit.metadata ?? {}).filter(([name]) => place === null || !OF_PLACE.includes(name));
    const like = (side, name) => button(t(name), () => exampled(side, hit.id), { class: "quiet", "aria-label": `${t(name)}: ${hit.id}` });
    this.element = h(
      "li",
      { class: "hit", tabindex: -1, data: { id: hit.id } },
      h("div", { class: "head" }, heading, h("div", {}, sureness(hit.confidence), this._score)),
      this._bar,
      this._parts,
      lineOfPlace(hit, place),
      hit.window ? h("p", { class: "hint", text: t("hit.window", { start: number(hit.window.start), end: number(hit.window.end) }) }) : null,
      this._text,
      chips(metadata),
      h("div", { class: "row" }, this._toggle, this._more, like("like", "like.more"), examples ? like("unlike", "like.less") : null),
      this._why,
    );
  }

  /** Shows an excerpt of its text, with what matches marked. */
  _showText({ characters, start, before, after }) {
    replace(this._text, before && "… ", marked(characters, start, this.hit.highlights), after && " …");
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

  /** Draws its place and score under these weights. most: the largest score on the page, as long as a whole bar; 0 for none. */
  update(rank, score, weights, most) {
    this._rank.textContent = rank;
    this._score.textContent = number(score, 3);
    this._score.title = t("hit.score", { score });
    const parts = SIDES.filter((side) => side in this.hit.scores && (side !== "bm25" || weights.bm25 > 0)).map((side) => ({ side, raw: this.hit.scores[side], weight: weights[side] ?? 0 }));
    if (this.hit.scores.boost) parts.push({ side: "boost", raw: this.hit.scores.boost, weight: 1 });
    this._bar.hidden = most === 0; // of ranks it is no sum
    replace(
      this._bar,
      parts.map(({ side, raw, weight }) => {
        const piece = h("span", { class: `piece side-${side}` });
        piece.style.width = `${most > 0 ? Math.max(0, (weight * (raw ?? 0)) / most) * 100 : 0}%`;
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
    this._showText(this._whole ? { characters: Array.from(this.hit.text), start: 0 } : excerptOf(this.hit));
  }
}
