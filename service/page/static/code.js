// A search as code: for the shell, for Python and for JavaScript.

import { h, replace, select } from "./dom.js";
import { t } from "./language.js";
import { copyText } from "./notices.js";

/** A value as Python writes it. */
function pythonOf(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonOf(each)}`).join(", ")}}`;
  return JSON.stringify(value);
}

// Of a server, the body of a search, and whether it needs a key, which is read from the environment.
const LANGUAGES = {
  curl: (url, body, key) => `curl ${url}/search${key ? ' -H "Authorization: Bearer $TERCET_CLIENT_KEY"' : ""} \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`,
  Python: (url, { collection, query, ...options }, key) => {
    const given = Object.entries(options).map(([name, value]) => `, ${name}=${pythonOf(value)}`);
    const client = `Client("${url}"${key ? ', key=os.environ["TERCET_CLIENT_KEY"]' : ""})`;
    return `${key ? "import os\n\n" : ""}from tercet_client import Client  # clients/python\n\nwith ${client} as client:\n    answer = client.search(${pythonOf(collection)}, ${pythonOf(query)}${given.join("")})\nfor hit in answer["hits"]:\n    print(hit["id"], hit["score"], hit["title"])`;
  },
  JavaScript: (url, body, key) => `const response = await fetch("${url}/search", {\n  method: "POST",\n  headers: { "Content-Type": "application/json"${key ? ", Authorization: `Bearer ${process.env.TERCET_CLIENT_KEY}`" : ""} },\n  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),\n});\nconst { hits } = await response.json();\nfor (const { id, score, title } of hits) console.log(id, score, title);`,
};

/** Shows the search of a body in a dialog. key: whether this tab sends one. */
export function showCode(body, key) {
  const language = select(Object.keys(LANGUAGES).map((each) => [each, each]), "curl", { "aria-label": t("code.language") });
  const code = h("pre", { class: "code" });
  const server = new URL(".", location.href).href.slice(0, -1); // behind a path prefix, too
  const draw = () => replace(code, LANGUAGES[language.value](server, body, key));
  language.addEventListener("change", draw);
  draw();
  const dialog = h(
    "dialog",
    { "aria-labelledby": "code-title", on: { close: () => dialog.remove() } },
    h("div", { class: "stack" }, h("h2", { id: "code-title", text: t("code.title") }), language, code, h("div", { class: "row end" }, h("button", { type: "button", text: t("close"), on: { click: () => dialog.close() } }), h("button", { type: "button", class: "primary", text: t("code.copy"), on: { click: () => copyText(code.textContent) } }))),
  );
  document.body.append(dialog);
  dialog.showModal();
}
