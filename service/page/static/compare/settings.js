// One of the two settings that are compared.

import { field, h, replace } from "../dom.js";
import { t } from "../language.js";
import { rankingControls, rankingJson, rankingOf, rankingValues } from "../ranking.js";
import { SIDES, weightsOf, weightsText } from "../weights.js";

const CANDIDATES = 200;

/** The setting of a part of an address. weights: those of the collection, where it says nothing else. */
export function settingOf(text, weights) {
  const values = new URLSearchParams(text ?? "");
  const count = (name) => (/^\d{1,4}$/.test(values.get(name) ?? "") ? Number(values.get(name)) : CANDIDATES);
  return { weights: { ...weights, ...weightsOf(values.get("w")) }, candidates: { dense: count("d"), sparse: count("s") }, ranking: rankingOf(values) };
}

/** A setting as such a part. */
export function settingText({ weights, candidates, ranking }) {
  const values = { w: weightsText(weights), d: candidates.dense, s: candidates.sparse, ...rankingValues(ranking) };
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== "")).toString();
}

/** What a search says of a setting. */
export function settingJson({ weights, candidates, ranking }, fields) {
  return { weights, candidates, ...rankingJson(ranking, fields) };
}

/** Controls of a setting. sides: those of the collection's scores. changed: called with the new setting. */
export function settingElement(name, setting, sides, fields, changed) {
  const set = (values) => {
    setting = { ...setting, ...values };
    changed(setting);
  };
  const numeric = (label, group, part, attributes) => {
    const input = h("input", { type: "number", min: 0, value: setting[group][part] ?? 0, ...attributes });
    input.addEventListener("change", () => input.validity.valid && input.value !== "" && set({ [group]: { ...setting[group], [part]: input.valueAsNumber } }));
    return field(label, input);
  };
  const weights = SIDES.filter((side) => sides.includes(side)).map((side) => numeric(t(`side.${side}`), "weights", side, { step: 0.05 }));
  const candidates = ["dense", "sparse"].map((part) => numeric(`${t("compare.candidates")}, ${t(`side.${part}`)}`, "candidates", part, { step: 1, max: 1000 }));
  const element = h("fieldset", { class: "card setting" });
  replace(element, h("legend", { text: name }), h("h2", { text: t("weights.title") }), h("div", { class: "fields" }, weights), h("div", { class: "fields" }, candidates), rankingControls(fields, setting.ranking, (ranking) => set({ ranking })));
  return element;
}
