// The view of the server: whether it is ready, what it runs, and its most important figures.

import { api, ApiError, apiText } from "../api.js";
import { h, replace } from "../dom.js";
import { bytes, duration, moment, number, t } from "../language.js";
import { errorNotice } from "../notices.js";
import { Metrics } from "./metrics.js";

const LOOK = 5000; // milliseconds between two looks
const WATCHING = ["/", "/health", "/ready", "/info", "/metrics", "unmatched"]; // routes of whoever looks at the server, as this page does
const FAILURES = ["upkeep", "backup", "publish", "audit"];

/** Shows the view. signal: ends its requests when it is left. */
export async function show(root, _values, signal) {
  const place = h("div", { class: "stack" });
  replace(root, h("h1", { text: t("server.title") }), place);
  const look = async () => {
    if (!document.hidden) await draw(place, signal);
    if (!signal.aborted) setTimeout(look, LOOK);
  };
  await look();
}

async function draw(place, signal) {
  try {
    const [ready, info, metrics] = await Promise.all([unlessRefused(api("GET", "/ready", { signal })), unlessRefused(api("GET", "/info", { signal })), unlessRefused(apiText("/metrics", signal))]);
    replace(place, stateOf(ready), info.error ? errorNotice(info.error) : numbers("facts", factsOf(info)), metrics.error ? errorNotice(metrics.error) : measured(new Metrics(metrics)));
  } catch (error) {
    if (error.name !== "AbortError") replace(place, errorNotice(error, () => draw(place, signal)));
  }
}

/** What is answered, or {error}: a key may not see all, and a server that is not ready says so. */
async function unlessRefused(answer) {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0) throw error;
    return { error };
  }
}

function stateOf(ready) {
  if (ready.error) return errorNotice(ready.error);
  const parts = [["server.searches", ready.reads], ["server.writes", ready.writes]].filter(([, state]) => state);
  return h("ul", { class: "plain row" }, parts.map(([name, state]) => h("li", { class: `state ${state === "ready" ? "succeeded" : "failed"}`, text: t(name, { state: t(`server.state.${state}`) }) })));
}

function factsOf({ version, encoder }) {
  return [
    [t("server.version"), version],
    [t("collections.encoder"), encoder.name],
    [t("server.engine"), `${encoder.engine}, ${encoder.precision}`],
    [t("server.longest"), t("server.tokens", { count: number(encoder.max_length) })],
  ];
}

function measured(metrics) {
  const requests = (statuses) => metrics.sum("tercet_requests_total", ({ status, route }) => statuses.test(status) && !WATCHING.includes(route)) ?? 0;
  const searches = ({ stage }) => stage === "total";
  const searched = metrics.sum("tercet_stage_seconds_count", searches);
  const free = metrics.sum("tercet_data_free_bytes");
  const failures = FAILURES.map((each) => [t(`server.failed.${each}`), metrics.sum(`tercet_${each}_failures_total`)]).filter(([, count]) => count > 0);
  const started = metrics.sum("process_start_time_seconds");
  return [
    numbers("numbers", [
      [t("server.requests"), number(requests(/./))],
      [t("server.refused"), number(requests(/^4/))],
      [t("server.failed"), number(requests(/^5/))],
      [t("server.searched"), number(searched ?? 0)],
      searched ? [t("server.mean"), `${number((1000 * metrics.sum("tercet_stage_seconds_sum", searches)) / searched, 1)} ms`] : null,
      [t("server.waiting"), number(metrics.sum("tercet_queue_tokens") ?? 0)],
      [t("server.memory"), bytes(metrics.sum("process_resident_memory_bytes") ?? 0)],
      free === null ? null : [t("server.free"), bytes(free)],
      started === null ? null : [t("server.since"), moment(1000 * started)],
    ]),
    failures.length ? h("div", { class: "notice error" }, h("strong", { text: t("server.failures") }), h("ul", {}, failures.map(([name, count]) => h("li", { text: `${name}: ${number(count)}` })))) : null,
    collectionsTable(metrics),
  ];
}

/** Each collection with its documents, and when it was last backed up or published. */
function collectionsTable(metrics) {
  const columns = [
    ["collections.documents", "tercet_documents", number],
    ["collections.segments", "tercet_segments", number],
    ["server.unpublished", "tercet_ledger_entries", number],
    ["server.backedUp", "tercet_backup_age_seconds", duration],
    ["server.published", "tercet_publish_silence_seconds", duration],
  ].map(([title, name, shown]) => ({ title, shown, values: metrics.by("collection", name) })).filter(({ values }) => values.size > 0);
  if (columns.length === 0) return null;
  const rows = [...columns[0].values.keys()].map((name) => h("tr", {}, h("th", { scope: "row", text: name }), columns.map(({ shown, values }) => h("td", { text: values.has(name) ? shown(values.get(name)) : "–" }))));
  const head = h("tr", {}, [t("collection"), ...columns.map(({ title }) => t(title))].map((text) => h("th", { scope: "col", text })));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("collections.title") }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows)));
}

function numbers(style, pairs) {
  return h("dl", { class: style }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value }))));
}
