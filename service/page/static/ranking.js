// How hits are ranked beside their weights: fusion, groups and boosts.

import { boostRows, boostsEditor, boostsOf, boostsText } from "./boosts.js";
import { field, h, select } from "./dom.js";
import { t } from "./language.js";

const FUSIONS = ["sum", "rrf"];

/** The ranking of an address's values. */
export function rankingOf(values) {
  return { fusion: FUSIONS.includes(values.get("fu")) ? values.get("fu") : "sum", group: values.get("g") ?? "", boosts: boostRows(values.get("b")) };
}

/** The values of an address for it. */
export function rankingValues({ fusion, group, boosts }) {
  return { fu: fusion === "sum" ? null : fusion, g: group, b: boostsText(boosts) };
}

/** What a search says of it. fields: types by name. */
export function rankingJson({ fusion, group, boosts }, fields) {
  const found = boostsOf(boosts, fields);
  return { ...(fusion === "sum" ? {} : { fusion }), ...(fields[group] === "keyword" ? { group_by: group } : {}), ...(found.length ? { boosts: found } : {}) };
}

/** Controls of it. changed: called with the new ranking. */
export function rankingControls(fields, ranking, changed) {
  const set = (values) => {
    ranking = { ...ranking, ...values };
    changed(ranking);
  };
  const fusion = select(FUSIONS.map((each) => [each, t(`fusion.${each}`)]), ranking.fusion);
  fusion.addEventListener("change", () => set({ fusion: fusion.value }));
  const keywords = Object.keys(fields).filter((name) => fields[name] === "keyword");
  const group = select([["", t("load.none")], ...keywords.map((name) => [name, name])], keywords.includes(ranking.group) ? ranking.group : "");
  group.addEventListener("change", () => set({ group: group.value }));
  return [field(t("fusion.title"), fusion), keywords.length ? field(t("group.title"), group, t("group.hint")) : null, Object.keys(fields).length ? [h("h3", { text: t("boosts.title") }), boostsEditor(fields, ranking.boosts, (boosts) => set({ boosts }))] : null];
}
