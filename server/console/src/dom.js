// Elements of the page. Text of data gets into the page as text nodes and attributes only, never as markup.

const SVG = "http://www.w3.org/2000/svg";

// Make an element. Attributes: `class`, `on<event>` (functions), `style` (an object), properties named in PROPERTIES,
// and any other; null, undefined and false leave an attribute out. Children: nodes, texts, numbers, arrays of these.
const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "hidden", "htmlFor", "readOnly", "multiple"]);

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...nodes(children));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
  else if (PROPERTIES.has(name)) element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

// Replace all children of an element.
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

// An icon of 24 x 24 units, drawn by strokes along `path`; it has no meaning for screen readers.
export function icon(path, name = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon ${name}`);
  svg.setAttribute("aria-hidden", "true");
  const drawn = document.createElementNS(SVG, "path");
  drawn.setAttribute("d", path);
  svg.append(drawn);
  return svg;
}

// A line of numbers without axes, scaled into width x height; NaN and null are gaps.
export function sparkline(values, width = 120, height = 28) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "sparkline");
  svg.setAttribute("aria-hidden", "true");
  const finite = values.filter(Number.isFinite);
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  let path = "";
  let pen = "M";
  values.forEach((value, at) => {
    if (!Number.isFinite(value)) {
      pen = "M";
      return;
    }
    const x = values.length > 1 ? (at / (values.length - 1)) * (width - 4) + 2 : width / 2;
    path += `${pen}${x.toFixed(1)} ${(height - 3 - ((value - low) / span) * (height - 6)).toFixed(1)}`;
    pen = "L";
  });
  const drawn = document.createElementNS(SVG, "path");
  drawn.setAttribute("d", path);
  svg.append(drawn);
  return svg;
}

// A button with text or an icon. `label`: for screen readers, and shown as a tooltip, where there is only an icon.
export function button(content, onclick, { label, kind = "", ...rest } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, onclick, "aria-label": label, title: label, ...rest }, content);
}

// A table of few rows. `columns`: texts, or {title, numeric}; cells: texts, numbers or nodes.
export function table(columns, rows, { caption } = {}) {
  const heads = columns.map((column) => (typeof column === "string" ? { title: column } : column));
  const kind = (at) => (heads[at].numeric ? "numeric" : undefined);
  return h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: "table" },
      h("thead", {}, h("tr", {}, heads.map((head, at) => h("th", { scope: "col", class: kind(at) }, head.title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: kind(at) }, cell)))))));
}

// Ask in a dialog; resolves to true if it was confirmed.
export function confirmed(question, verb) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "dialog", "aria-label": question, onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("form", { method: "dialog" }, h("p", {}, question),
        h("div", { class: "actions" }, h("button", { class: "button", value: "no" }, "Cancel"),
          h("button", { class: "button danger", value: "yes" }, verb))));
    document.body.append(dialog);
    dialog.showModal();
  });
}
