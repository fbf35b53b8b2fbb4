// A table of any number of rows and columns, of which only the visible part is in the page.

import { fill, h } from "./dom.js";

const ROW = 26;
const SPARE_ROWS = 6;
const CHARACTER = 7.7;
const NARROWEST = 72;
const WIDEST = 420;
// Browsers do not make elements much higher than this.
const HEIGHT_MAX = 30_000_000;
const NUMERIC = new Set(["INT32", "INT64", "FLOAT", "DOUBLE"]);

export class ResultTable {
  constructor() {
    this.head = h("div", { class: "rows-head", role: "row" });
    this.body = h("div", { class: "rows-body", role: "rowgroup" });
    this.element = h("div", { class: "rows", role: "table", tabindex: 0, "aria-label": "Result", onscroll: () => this.#draw() },
      h("div", { class: "rows-heads", role: "rowgroup" }, this.head), this.body);
    this.observer = new ResizeObserver(() => this.#draw());
    this.observer.observe(this.element);
    this.start([]);
  }

  // Begin a result with these columns: {name, type}.
  start(columns) {
    this.columns = columns;
    this.parts = [];
    this.starts = [];
    this.count = 0;
    this.widths = null;
    this.element.scrollTo(0, 0);
    fill(this.body);
    fill(this.head);
  }

  // Append rows: {rows, values: [column]}.
  append(part) {
    this.parts.push(part);
    this.starts.push(this.count);
    this.count += part.rows;
    if (!this.widths) this.#measure(part);
    this.element.setAttribute("aria-rowcount", this.count + 1);
    this.body.style.height = `${Math.min(this.count * ROW, HEIGHT_MAX)}px`;
    this.#draw();
  }

  // Size the columns by their first values.
  #measure(part) {
    let left = 0;
    this.widths = this.columns.map((column, at) => {
      const texts = part.values[at].slice(0, 100).map((value) => shown(value).length);
      return Math.min(Math.max(Math.max(column.name.length, ...texts) * CHARACTER + 26, NARROWEST), WIDEST);
    });
    this.lefts = this.widths.map((width) => {
      left += width;
      return left - width;
    });
    this.head.style.width = this.body.style.width = `${left}px`;
  }

  #cells() {
    const low = this.element.scrollLeft;
    const high = low + this.element.clientWidth;
    return this.columns.map((_, at) => at).filter((at) => this.lefts[at] < high && this.lefts[at] + this.widths[at] > low);
  }

  #draw() {
    if (!this.widths) return;
    const visible = this.#cells();
    const place = (at) => ({ left: `${this.lefts[at]}px`, width: `${this.widths[at]}px` });
    const kind = (at) => (NUMERIC.has(this.columns[at].type) ? "cell numeric" : "cell");
    fill(this.head, visible.map((at) => h("div", { role: "columnheader", class: kind(at), title: `${this.columns[at].name}: ${this.columns[at].type}`, style: place(at) }, this.columns[at].name)));
    const height = this.body.offsetHeight;
    const scale = this.count * ROW > HEIGHT_MAX ? (this.count * ROW) / height : 1;
    const first = Math.max(Math.floor((this.element.scrollTop * scale) / ROW) - SPARE_ROWS, 0);
    const last = Math.min(first + Math.ceil(this.element.clientHeight / ROW) + 2 * SPARE_ROWS, this.count);
    const offset = this.element.scrollTop - this.element.scrollTop * scale;
    const rows = [];
    for (let row = first; row < last; row += 1) {
      const values = this.#row(row);
      rows.push(h("div", { role: "row", class: row % 2 ? "row odd" : "row", "aria-rowindex": row + 2, style: { top: `${row * ROW + offset}px` } },
        visible.map((at) => h("div", { role: "cell", class: values[at] === null ? `${kind(at)} null` : kind(at), style: place(at) }, shown(values[at])))));
    }
    fill(this.body, rows);
  }

  #row(row) {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return this.parts[low].values.map((column) => column[row - this.starts[low]]);
  }

  destroy() {
    this.observer.disconnect();
  }
}

const shown = (value) => (value === null ? "null" : String(value));
