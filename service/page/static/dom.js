// Elements without markup: text is always text, so what a document holds is never HTML.

/** An element. Properties: on (listeners by event), class, data, text, or any attribute; null leaves one out. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "text") element.textContent = value;
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

/** Adds children: elements, texts, lists of them; null leaves one out. */
export function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
}

/** Puts these children in place of what is there. */
export function replace(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/** A link to an address of the web, null where it is none: no other scheme is followed. */
export function webLink(address, ...children) {
  const web = URL.canParse(address) && ["http:", "https:"].includes(new URL(address).protocol);
  return web ? h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, children) : null;
}

/** Names with their values, as of metadata; null for none. */
export function chips(entries) {
  if (entries.length === 0) return null;
  return h("ul", { class: "chips" }, entries.map(([name, value]) => h("li", { text: `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}` })));
}

let last = 0;

/** An id that no other element has. */
export function uniqueId(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}

/** A label above its control. */
export function field(label, control, hint = null) {
  control.id ||= uniqueId("field");
  const hintElement = hint === null ? null : h("span", { class: "hint", id: `${control.id}-hint`, text: hint });
  if (hintElement) control.setAttribute("aria-describedby", hintElement.id);
  return h("div", { class: "field" }, h("label", { for: control.id, text: label }), control, hintElement);
}

/** A select of [value, label] pairs. */
export function select(options, value, properties = {}) {
  const element = h("select", properties, options.map(([each, label]) => h("option", { value: each, text: label })));
  element.value = value;
  return element;
}

/** A button that cannot be pressed again until what it does has ended. */
export function button(label, action, properties = {}) {
  return h("button", {
    type: "button",
    ...properties,
    text: label,
    on: {
      click: async (event) => {
        const pressed = event.currentTarget;
        pressed.disabled = true;
        try {
          await action(event);
        } finally {
          pressed.disabled = false;
        }
      },
    },
  });
}

/** A function that waits until it was not called for some milliseconds. */
export function debounced(action, milliseconds) {
  let timer = 0;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds, ...values);
  };
  later.now = (...values) => {
    clearTimeout(timer);
    action(...values);
  };
  return later;
}
