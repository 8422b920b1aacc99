// One of the two settings that are compared.

import { field, h, replace } from "../dom.js";
import { t } from "../language.js";
import { rankingControls, rankingJson, rankingOf, rankingValues } from "../ranking.js";
import { SIDES, weightsOf, weightsText } from "../weights.js";

/** The setting of a part of an address. defaults: the collection's weights and candidates, where it says nothing else. */
export function settingOf(text, { weights, candidates }) {
  const values = new URLSearchParams(text ?? "");
  const count = (name, usual) => (/^\d{1,4}$/.test(values.get(name) ?? "") ? Number(values.get(name)) : usual);
  return { weights: { ...weights, ...weightsOf(values.get("w")) }, candidates: { dense: count("d", candidates.dense), sparse: count("s", candidates.sparse) }, ranking: rankingOf(values) };
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

/** Controls of a setting. changed: called with the new setting. */
export function settingElement(name, setting, fields, changed) {
  const set = (values) => {
    setting = { ...setting, ...values };
    changed(setting);
  };
  const numeric = (label, group, part, attributes) => {
    const input = h("input", { type: "number", min: 0, value: setting[group][part] ?? 0, ...attributes });
    input.addEventListener("change", () => input.validity.valid && input.value !== "" && set({ [group]: { ...setting[group], [part]: input.valueAsNumber } }));
    return field(label, input);
  };
  const weights = SIDES.filter((side) => side in setting.weights).map((side) => numeric(t(`side.${side}`), "weights", side, { step: "any" }));
  const candidates = ["dense", "sparse"].map((part) => numeric(`${t("compare.candidates")}, ${t(`side.${part}`)}`, "candidates", part, { step: 1, max: 1000 }));
  const [fusion, group, boosts] = rankingControls(fields, setting.ranking, (ranking) => set({ ranking }));
  const element = h("fieldset", { class: "card setting" });
  replace(element, h("legend", { text: name }), h("h2", { text: t("weights.title") }), h("div", { class: "fields" }, weights), h("div", { class: "fields" }, candidates), h("div", { class: "fields" }, fusion, group), boosts);
  return element;
}
