// One hit: its score in parts, its text with the matching words, and why it is there.

import { explanationElement } from "./alignment.js";
import { api } from "./api.js";
import { button, h, replace, uniqueId } from "./dom.js";
import { number, t } from "./language.js";
import { SIDES } from "./weights.js";

const EXCERPT = 600; // characters of a text that are shown at first

/** What is shown of a text at first: the passage that matched best, or its beginning. In code points. */
export function excerptOf(hit) {
  const characters = Array.from(hit.text);
  const [start, end] = hit.window ? [hit.window.start, hit.window.end] : [0, characters.length];
  const stop = Math.min(end, start + EXCERPT);
  return { text: characters.slice(start, stop).join(""), before: start > 0, after: stop < characters.length };
}

/** Weight of each token id that the hit shares with the query, as a share of its heaviest. */
function sharedWeights(hit) {
  const terms = hit.explanation?.terms ?? [];
  const most = Math.max(0, ...terms.map((each) => each.product));
  return new Map(terms.map((each) => [each.token_id, { share: most ? each.product / most : 0, product: each.product }]));
}

/** A text with the tokens of these ids marked. tokens: as /tei/tokenize gives them. */
function marked(text, tokens, weights) {
  const characters = Array.from(text);
  const parts = [];
  let at = 0;
  let run = null;
  for (const token of tokens ?? []) {
    const weight = weights.get(token.id);
    if (weight === undefined || token.start < at) continue;
    if (token.start > at) {
      parts.push(characters.slice(at, token.start).join(""));
      run = null;
    }
    const piece = characters.slice(token.start, token.stop).join("");
    if (run !== null) run.append(piece); // pieces of one word are one mark
    else {
      run = h("mark", { title: `${t("hit.product")} ${number(weight.product, 3)}`, text: piece });
      run.style.setProperty("--share", weight.share.toFixed(3));
      parts.push(run);
    }
    at = token.stop;
  }
  parts.push(characters.slice(at).join(""));
  return parts;
}

/** The tokens of texts, in one request; null for each where they cannot be had. */
export async function tokensOf(texts, signal) {
  try {
    return await api("POST", "/tei/tokenize", { json: { inputs: texts, add_special_tokens: false }, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return texts.map(() => null);
  }
}

/** The element of a hit; `update` moves its bar to other weights. */
export class HitElement {
  constructor(hit, explanationProblem) {
    this.hit = hit;
    this._weights = sharedWeights(hit);
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
    this.showText(excerpt, null);
    const heading = h("h3", {}, this._rank, h("span", { class: "title", text: hit.title || hit.id }), hit.title ? h("span", { class: "id", text: hit.id }) : null);
    const metadata = Object.entries(hit.metadata ?? {});
    this.element = h(
      "li",
      { class: "hit", tabindex: -1, data: { id: hit.id } },
      h("div", { class: "head" }, heading, this._score),
      this._bar,
      this._parts,
      hit.window ? h("p", { class: "hint", text: t("hit.window", { start: number(hit.window.start), end: number(hit.window.end) }) }) : null,
      this._text,
      metadata.length ? h("ul", { class: "chips" }, metadata.map(([name, value]) => h("li", { text: `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}` }))) : null,
      h("div", { class: "row" }, this._toggle, this._more),
      this._why,
    );
  }

  /** Shows its text. tokens: of the excerpt, to mark those that match. */
  showText(excerpt, tokens) {
    replace(this._text, excerpt.before && "… ", marked(excerpt.text, tokens, this._weights), excerpt.after && " …");
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

  /** Draws its place and score under these weights. most: the largest score on the page, as long as a whole bar. */
  update(rank, score, weights, most) {
    this._rank.textContent = rank;
    this._score.textContent = number(score, 3);
    this._score.title = t("hit.score", { score });
    const parts = SIDES.filter((side) => side in this.hit.scores && (side !== "bm25" || weights.bm25 > 0)).map((side) => ({ side, raw: this.hit.scores[side], weight: weights[side] ?? 0 }));
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

  async _showAll() {
    if (this._whole) {
      this._whole = false;
      this._more.textContent = t("hit.more");
      const excerpt = excerptOf(this.hit);
      const [tokens] = await tokensOf([excerpt.text]);
      this.showText(excerpt, tokens);
      return;
    }
    const [tokens] = await tokensOf([this.hit.text]);
    this._whole = true;
    this._more.textContent = t("hit.less");
    this.showText({ text: this.hit.text, before: false, after: false }, tokens);
  }
}
