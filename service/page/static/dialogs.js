// Questions that are asked in front of the page.

import { append, field, h } from "./dom.js";
import { t } from "./language.js";
import { attempted } from "./notices.js";

/**
 * Asks with a form; resolves to what `submit` gave, or to null where it was closed.
 * submit: may throw, and then the dialog stays and says why.
 */
export function ask({ title, text = null, controls = [], action, danger = false, submit = () => true }) {
  return new Promise((resolve) => {
    const problem = h("div");
    const done = h("button", { type: "submit", class: danger ? "danger" : "primary", text: action });
    const heading = h("h2", { id: "dialog-title", text: title });
    const form = h(
      "form",
      {
        method: "dialog",
        on: {
          submit: async (event) => {
            event.preventDefault();
            done.disabled = true;
            const given = await attempted(problem, submit);
            done.disabled = false;
            if (given !== undefined) close(given);
          },
        },
      },
      heading,
      text && h("p", { text }),
      controls,
      problem,
      h("div", { class: "row end" }, h("button", { type: "button", text: t("cancel"), on: { click: () => close(null) } }), done),
    );
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", on: { cancel: () => close(null) } }, form);
    let answered = false;
    function close(value) {
      if (answered) return;
      answered = true;
      dialog.close();
      dialog.remove();
      resolve(value);
    }
    append(document.body, [dialog]);
    dialog.showModal();
  });
}

/** Asks before something is done that cannot be taken back. Resolves to whether it was done. */
export async function confirmed(title, text, action, doIt) {
  const done = await ask({ title, text, action, danger: true, submit: async () => (await doIt(), true) });
  return done === true;
}

/** Asks for a key; null where none was given. */
export function askForKey(refused) {
  const input = h("input", { type: "password", autocomplete: "off", required: true, autofocus: true });
  return ask({
    title: t("key.title"),
    text: refused ? t("key.refused") : t("key.text"),
    controls: [field(t("key.label"), input)],
    action: t("key.use"),
    submit: () => input.value.trim(),
  });
}
