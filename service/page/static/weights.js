// The sides of a score: their names, weights and sliders.

import { h, uniqueId } from "./dom.js";
import { number, t } from "./language.js";

export const SIDES = ["dense", "sparse", "colbert", "bm25"];

/** The weighted sum of a hit's scores, and its boost; a side without a score counts nothing. */
export function weightedSum(scores, weights) {
  return SIDES.reduce((sum, side) => sum + (weights[side] ?? 0) * (scores[side] ?? 0), scores.boost ?? 0);
}

/** Weights as in an address, "1,0.3,1" or with a fourth. */
export function weightsText(weights) {
  return SIDES.filter((side) => side in weights).map((side) => weights[side]).join(",");
}

/** The weights of such a text, null where it is none. */
export function weightsOf(text) {
  const values = (text ?? "").split(",").map(Number);
  if (values.length < 3 || values.length > 4 || values.some((value) => !(value >= 0))) return null;
  return Object.fromEntries(values.map((value, place) => [SIDES[place], value]));
}

/** A slider for each side. changed: called with all weights while one moves. */
export function sliders(weights, changed) {
  const current = { ...weights };
  return h(
    "div",
    { class: "sliders" },
    SIDES.filter((side) => side in weights).map((side) => {
      const id = uniqueId("weight");
      const shown = h("output", { for: id, text: number(current[side], 2) });
      const most = Math.max(side === "bm25" ? 4 : 2, current[side]);
      const slider = h("input", {
        id,
        type: "range",
        min: 0,
        max: most,
        step: 0.05,
        value: current[side],
        class: `side-${side}`,
        on: {
          input: (event) => {
            current[side] = Number(event.target.value);
            shown.textContent = number(current[side], 2);
            changed({ ...current });
          },
        },
      });
      return h("div", { class: "slider" }, h("label", { for: id, title: t(`side.${side}.hint`) }, h("span", { class: `swatch side-${side}` }), t(`side.${side}`)), slider, shown);
    }),
  );
}
