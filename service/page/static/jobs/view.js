// The view of jobs: builds from files, with their progress.

import { api, collectionPath } from "../api.js";
import { ask } from "../dialogs.js";
import { button, field, h, replace, select } from "../dom.js";
import { moment, number, t } from "../language.js";
import { emptyNotice, errorNotice } from "../notices.js";

const LOOK = 1000; // milliseconds between two looks while a job runs

/** Shows the view. signal: ends its requests when it is left. */
export async function show(root, _values, signal) {
  const place = h("div");
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  const load = async () => {
    clearTimeout(timer);
    try {
      const { jobs } = await api("GET", "/jobs", { signal });
      draw(place, jobs, load);
      const open = jobs.some((each) => each.state === "queued" || each.state === "running");
      if (open && !signal.aborted) timer = setTimeout(load, document.hidden ? 10 * LOOK : LOOK);
    } catch (error) {
      if (error.name !== "AbortError") replace(place, errorNotice(error, load));
    }
  };
  const add = async () => {
    if (await submitted()) await load();
  };
  replace(root, h("div", { class: "row spread" }, h("h1", { text: t("jobs.title") }), button(t("jobs.add"), add, { class: "primary" })), place);
  await load();
}

/** Draws the jobs; what has the focus keeps it. */
function draw(place, jobs, reload) {
  const focused = document.activeElement?.dataset.job;
  replace(place, jobs.length ? h("ul", { class: "cards", "aria-label": t("jobs.title") }, jobs.map((each) => card(each, reload))) : emptyNotice(t("jobs.none")));
  if (focused) place.querySelector(`[data-job="${CSS.escape(focused)}"]`)?.focus();
}

function card(job, reload) {
  const open = job.state === "queued" || job.state === "running";
  const done = number(job.documents_done);
  const counted = job.documents_total === null ? t("jobs.documents", { done }) : t("jobs.of", { done, total: number(job.documents_total) });
  const facts = [
    counted,
    open && job.phase ? t(`jobs.phase.${job.phase}`) : null,
    job.skipped ? t("jobs.skipped", { count: number(job.skipped) }) : null,
    job.truncated ? t("jobs.truncated", { count: number(job.truncated) }) : null,
    moment(job.finished_at ?? job.started_at ?? job.created_at),
  ];
  const cancel = button(
    t("jobs.cancel"),
    async () => {
      await api("DELETE", `/jobs/${encodeURIComponent(job.id)}`);
      await reload();
    },
    { class: "quiet", data: { job: job.id }, "aria-label": `${t("jobs.cancel")}: ${job.collection}` },
  );
  return h(
    "li",
    { class: "card" },
    h("div", { class: "row spread" }, h("h2", {}, `${job.collection} ← ${job.source}`), h("span", { class: `state ${job.state}`, text: t(`jobs.state.${job.state}`) })),
    open ? h("progress", { max: 1, value: job.fraction, "aria-label": t("jobs.progress", { collection: job.collection }) }) : null,
    h("p", { class: "hint", text: facts.filter(Boolean).join(" · ") }),
    job.error ? h("p", { class: "notice error", text: job.error }) : null,
    job.skips.length ? h("ul", { class: "plain hint" }, job.skips.map((text) => h("li", { text }))) : null,
    open ? h("div", { class: "row" }, cancel) : null,
  );
}

async function submitted() {
  const collection = h("input", { required: true, maxlength: 64, autocapitalize: "off", spellcheck: "false" });
  const source = h("input", { required: true, placeholder: "articles.jsonl", spellcheck: "false" });
  const mode = select([["replace", t("jobs.replace")], ["upsert", t("jobs.upsert")]], "replace");
  const onError = select([["stop", t("jobs.stop")], ["skip", t("jobs.skip")]], "stop");
  const json = () => ({ source: source.value.trim(), mode: mode.value, on_error: onError.value });
  const job = await ask({
    title: t("jobs.add"),
    controls: [field(t("collection"), collection), field(t("jobs.source"), source), field(t("jobs.mode"), mode), field(t("jobs.onError"), onError)],
    action: t("jobs.submit"),
    submit: () => api("POST", collectionPath(collection.value.trim(), "jobs"), { json: json() }),
  });
  return job !== null;
}
