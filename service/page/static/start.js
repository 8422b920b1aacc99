// What a collection is like before anything is asked: questions made of its documents, and some of these.

import { api, ApiError, collectionPath } from "./api.js";
import { button, h } from "./dom.js";
import { t } from "./language.js";

const LOOKED_AT = 12; // documents
const QUESTIONS = 4;
const SHOWN = 3;
const LONGEST = 80; // characters of a question
const EXCERPT = 140;
const SENTENCE = /^.*?(?:[.!?](?=\s)|[。！？]|$)/su;

/** A question that a document answers: its title where that says enough, else its first sentence as far as it is short. */
function questionOf({ title, text }) {
  const heading = title?.trim() ?? "";
  if (heading.split(/\s+/).length > 2 || heading.length > 20) return heading.slice(0, LONGEST);
  const [sentence] = SENTENCE.exec(text.replace(/^[#>*\s-]+/, ""));
  if (sentence.length <= LONGEST) return sentence.trim();
  const cut = sentence.slice(0, LONGEST);
  const end = Math.max(cut.lastIndexOf(","), cut.lastIndexOf("、")) > LONGEST / 3 ? cut.search(/[,、][^,、]*$/) : cut.lastIndexOf(" ");
  return cut.slice(0, end > 0 ? end : LONGEST).trim();
}

/** The element, null where the server tells of no documents. asked: called with a question that is chosen. */
export async function startElement(collection, asked, signal) {
  try {
    const { documents } = await api("GET", collectionPath(collection, "documents"), { params: { limit: LOOKED_AT }, signal });
    if (documents.length === 0) return null;
    const step = documents.length / QUESTIONS;
    const places = [...new Set(Array.from({ length: QUESTIONS }, (_, place) => Math.floor(place * step)))];
    const questions = [...new Set(places.map((place) => questionOf(documents[place])))].filter(Boolean);
    const sample = documents.slice(-SHOWN).map(({ id, title, text }) => h("li", {}, h("strong", { text: title || id }), " ", h("span", { class: "hint", text: `${text.slice(0, EXCERPT)}${text.length > EXCERPT ? " …" : ""}` })));
    return h(
      "div",
      { class: "start" },
      h("h2", { text: t("start.questions") }),
      h("ul", { class: "plain questions" }, questions.map((text) => h("li", {}, button(text, () => asked(text))))),
      h("h2", { text: t("start.sample") }),
      h("ul", { class: "plain" }, sample),
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return null; // a search will say what is wrong
  }
}
