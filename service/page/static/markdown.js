// A part of Markdown as elements: headings, lists, code, bold and links. What a document holds stays text.

import { h, webLink } from "./dom.js";

const WRAPPED = 60; // characters of a line from which on it ends where there was no more room
const FENCE = /^\s*(```|~~~)/;
const MARK = /^(?:(#{1,6})\s+|\s*(?:[-*+]|(\d{1,3})[.)])\s+)/; // of a heading, or of an item of a list
// Lengths are bounded, so that a text of nothing but brackets takes no time.
const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|!?\[([^[\]\n]{1,500})\]\(((?:[^()\s]|\([^()\s]{0,200}\)){1,2000})\)/g;

/** The elements of a part of a text, from a position to another. leaf: gives the nodes of what lies between two positions. */
export function markdownElements(text, from, to, leaf) {
  const blocks = [];
  let open = null; // the block that the next line may belong to
  const add = (element) => {
    blocks.push(element);
    return element;
  };
  let at = from;
  let before = ""; // the line before
  for (const line of text.slice(from, to).split("\n")) {
    const end = at + line.length;
    const inCode = open?.tagName === "PRE";
    if (FENCE.test(line)) open = inCode ? null : add(h("pre"));
    else if (inCode) open.append(...leaf(at, Math.min(end + 1, to)));
    else if (line.trim() === "") open = null;
    else {
      const [mark, heading, digits] = MARK.exec(line) ?? [""];
      const nodes = inline(text, at + mark.length, end, leaf);
      const list = digits ? "OL" : "UL";
      if (heading) {
        add(h("h4", {}, nodes));
        open = null;
      } else if (mark !== "") {
        if (open?.tagName !== list) open = add(h(list, digits ? { start: digits } : {}));
        open.append(h("li", {}, nodes));
      } else if (open === null) open = add(h("p", {}, nodes));
      else (open.tagName === "P" ? open : open.lastChild).append(before.length < WRAPPED ? "\n" : " ", ...nodes);
    }
    at = end + 1;
    before = line;
  }
  return blocks;
}

/** Code, bold and links of a line; a link that is no address of the web is its text alone, as an image is. */
function inline(text, from, to, leaf) {
  const nodes = [];
  let at = from;
  for (const { 0: whole, 1: code, 2: bold, 3: label, 4: address, index } of text.slice(from, to).matchAll(INLINE)) {
    const start = from + index;
    nodes.push(...leaf(at, start));
    at = start + whole.length;
    if (code) nodes.push(h("code", {}, leaf(start + 1, at - 1)));
    else if (bold) nodes.push(h("strong", {}, leaf(start + 2, at - 2)));
    else {
      const first = start + whole.indexOf("[") + 1;
      const shown = leaf(first, first + label.length);
      const link = whole.startsWith("!") ? null : webLink(address, shown);
      nodes.push(...(link ? [link] : shown));
    }
  }
  nodes.push(...leaf(at, to));
  return nodes;
}
