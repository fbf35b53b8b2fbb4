// The page Query: tabs with statements, their results as a table, a chart, or a plan, and the history of statements.

import { isAbort } from "./api.js";
import { Chart } from "./chart.js";
import { completions } from "./completion.js";
import { button, fill, h, icon } from "./dom.js";
import { Editor } from "./editor.js";
import { plan } from "./plan.js";
import { ResultTable } from "./result_table.js";

const HISTORY_MAX = 200;
// More rows are not kept in the browser; the downloads have all.
const ROWS_MAX = 1_000_000;
const LINK_MAX = 24_000;
const ICONS = { run: "M7 4l13 8-13 8z", plus: "M12 5v14M5 12h14", close: "M7 7l10 10M17 7L7 17", history: "M12 8v4l3 2M3.5 12a8.5 8.5 0 1 0 2.5-6M3 4v4h4" };

const stored = (name, fallback) => {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? fallback;
  } catch {
    return fallback;
  }
};
const store = (name, value) => localStorage.setItem(name, JSON.stringify(value));

class QueryPage {
  constructor(root, api) {
    this.api = api;
    this.texts = stored("saros.tabs", [""]);
    this.states = this.texts.map(() => null);
    this.open = Math.min(stored("saros.tab", 0), this.texts.length - 1);
    this.editor = new Editor({
      complete: completions(api),
      onRun: () => this.run(),
      onCancel: () => this.cancel(),
      onChange: (text) => this.#keep(text),
    });
    this.table = new ResultTable();
    this.view = "table";
    this.#build(root);
    this.#showTab(this.open);
    this.onKey = (event) => this.#key(event);
    addEventListener("keydown", this.onKey);
  }

  #build(root) {
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Statements", onkeydown: (event) => this.#tabKey(event) });
    this.closeButton = button(icon(ICONS.close), () => this.#close(this.open), { label: "Close tab", kind: "quiet" });
    this.runButton = button([icon(ICONS.run, "filled"), "Run"], () => this.run(), { kind: "primary", title: "Run (Ctrl Enter)" });
    this.cancelButton = button("Cancel", () => this.cancel(), { disabled: true, title: "Cancel (Esc)" });
    this.explainButton = button("Explain", () => this.explain(), { title: "Run, and show the plan with times" });
    this.status = h("span", { class: "status", role: "status" });
    this.csv = h("a", { class: "button small", download: "result.csv", hidden: true }, "CSV");
    this.parquet = h("a", { class: "button small", download: "result.parquet", hidden: true }, "Parquet");
    this.views = ["table", "chart", "plan"].map((name) => button(name[0].toUpperCase() + name.slice(1), () => this.#choose(name), { kind: "small", "aria-pressed": "false", "data-view": name }));
    this.result = h("div", { class: "result" }, this.#welcome());
    root.append(
      h("div", { class: "tab-bar" }, this.tabs, this.closeButton, button(icon(ICONS.plus), () => this.add(), { label: "New tab (Alt N)", kind: "quiet" }),
        button([icon(ICONS.history), h("span", {}, "History")], () => this.showHistory(), { kind: "quiet end", label: "History" })),
      this.editor.element,
      h("div", { class: "run-bar" }, this.runButton, this.cancelButton, this.explainButton, this.status,
        h("div", { class: "views", role: "group", "aria-label": "View of the result" }, this.views), this.csv, this.parquet),
      this.result);
  }

  #welcome() {
    return h("div", { class: "empty" }, h("p", {}, "Write a statement and press ", h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"), "."), h("p", {}, "To begin with an empty database: ", h("code", {}, "insert into root.plant.pump(time, level) values (now(), 1.5)")), h("p", {}, h("a", { href: "#/explore" }, "Explore"), " shows the series that there are; ", h("a", { href: "#/import" }, "Import"), " reads a file."));
  }

  // ---------------------------------------------------------------------------------------------- tabs

  #keep(text) {
    this.texts[this.open] = text;
    store("saros.tabs", this.texts);
    this.#nameTab();
  }

  #nameTab() {
    const label = this.tabs.querySelector('[aria-selected="true"]');
    if (label) label.textContent = nameOf(this.texts[this.open], this.open);
  }

  // Show a tab, and focus its editor, or the tab itself.
  #showTab(at, focus = true) {
    if (this.states[this.open]) this.states[this.open] = this.editor.view.state;
    this.open = at;
    this.states[at] ??= this.editor.stateOf(this.texts[at]);
    this.editor.show(this.states[at]);
    store("saros.tab", at);
    fill(this.tabs, this.texts.map((text, n) => button(nameOf(text, n), () => this.#showTab(n), { kind: "tab", role: "tab", "aria-selected": String(n === at), tabindex: n === at ? 0 : -1 })));
    this.tabs.children[at].scrollIntoView({ block: "nearest", inline: "nearest" });
    this.closeButton.hidden = this.texts.length === 1;
    if (focus) this.editor.focus();
    else this.tabs.children[at].focus();
  }

  // Arrows, Home and End open other tabs, as in all lists of tabs.
  #tabKey(event) {
    const last = this.texts.length - 1;
    const at = { ArrowLeft: this.open ? this.open - 1 : last, ArrowRight: this.open < last ? this.open + 1 : 0, Home: 0, End: last }[event.key];
    if (at === undefined || event.altKey || event.ctrlKey) return;
    event.preventDefault();
    this.#showTab(at, false);
  }

  add(text = "") {
    this.texts.push(text);
    this.states.push(null);
    store("saros.tabs", this.texts);
    this.#showTab(this.texts.length - 1);
  }

  #close(at) {
    this.texts.splice(at, 1);
    this.states.splice(at, 1);
    this.open = -1; // its state is not kept
    store("saros.tabs", this.texts);
    this.#showTab(Math.max(at - 1, 0));
  }

  #key(event) {
    if (event.altKey && event.code === "KeyN") {
      event.preventDefault();
      this.add();
    } else if (event.key === "Escape" && !event.defaultPrevented && this.abort && !document.querySelector("dialog[open]")) this.cancel();
  }

  // ---------------------------------------------------------------------------------------------- running

  run() {
    const sql = this.editor.current();
    if (sql.trim()) this.execute(sql);
  }

  explain() {
    const sql = this.editor.current();
    if (sql.trim()) this.execute(/^\s*explain\b/i.test(sql) ? sql : `explain analyze ${sql}`);
  }

  cancel() {
    if (!this.abort) return false;
    this.abort.abort();
    return true;
  }

  async execute(sql) {
    this.cancel();
    const abort = new AbortController();
    this.abort = abort;
    this.#begin(sql);
    const began = performance.now();
    const seconds = () => `${((performance.now() - began) / 1000).toFixed(2)} s`;
    const clock = setInterval(() => this.abort === abort && fill(this.status, `${this.table.count ? `${this.table.count.toLocaleString("en")} rows, ` : ""}${seconds()}`), 200);
    try {
      fill(this.status, await this.#receive(sql, abort), `, ${seconds()}`);
    } catch (error) {
      if (isAbort(error)) fill(this.status, `cancelled after ${seconds()}`);
      else this.#fail(error);
    } finally {
      clearInterval(clock);
      if (this.abort === abort) this.#end();
    }
  }

  // Show a result while it arrives; return its summary.
  async #receive(sql, abort) {
    let columns = [];
    for await (const part of this.api.query(sql, { signal: abort.signal })) {
      if (part.columns) {
        columns = part.columns;
        if (!columns.length) {
          this.#message(`Done${part.count > 0 ? `, ${part.count.toLocaleString("en")} points` : ""}.`);
          return "done";
        }
        this.#startResult(sql, columns);
      } else {
        this.table.append(part);
        if (this.table.count >= ROWS_MAX) {
          this.#finish();
          return `the first ${this.table.count.toLocaleString("en")} rows; the downloads have all`;
        }
      }
    }
    this.#finish();
    return `${this.table.count.toLocaleString("en")} ${this.table.count === 1 ? "row" : "rows"}`;
  }

  #begin(sql) {
    this.sql = sql;
    const past = stored("saros.history", []).filter((found) => found.sql !== sql);
    store("saros.history", [{ sql, at: Date.now() }, ...past].slice(0, HISTORY_MAX));
    this.table.start([]);
    this.chart?.destroy();
    this.chart = null;
    this.isPlan = false;
    this.hasChart = false;
    this.cancelButton.disabled = false;
    if (this.runButton === document.activeElement) this.cancelButton.focus();
    this.runButton.disabled = true;
    fill(this.status, "running ...");
    this.csv.hidden = this.parquet.hidden = true;
    fill(this.result, h("div", { class: "empty" }, h("div", { class: "spinner" }), h("p", {}, "Running ...")));
    this.#mark();
  }

  #startResult(sql, columns) {
    this.table.start(columns);
    this.isPlan = /^\s*explain\b/i.test(sql);
    this.hasChart = !this.isPlan && columns[0].name === "Time" && columns.some((column) => /^(INT|FLOAT|DOUBLE|BOOLEAN)/.test(column.type));
    if (!this.isPlan && sql.length < LINK_MAX) {
      this.csv.href = `/query.csv?sql=${encodeURIComponent(sql)}`;
      this.parquet.href = `/query.parquet?sql=${encodeURIComponent(sql)}`;
      this.csv.hidden = this.parquet.hidden = !/^\s*(select|show|count|with|\()/i.test(sql);
    }
    if (!this.isPlan) this.#show(this.view === "chart" && this.hasChart ? "chart" : "table");
  }

  #finish() {
    if (this.isPlan) this.#show("plan");
    else if (!this.table.count) this.#message("No rows.");
  }

  #end() {
    this.abort = null;
    this.runButton.disabled = false;
    if (this.cancelButton === document.activeElement) this.runButton.focus();
    this.cancelButton.disabled = true;
  }

  #fail(error) {
    fill(this.status, "failed");
    fill(this.result, h("div", { class: "error", role: "alert" }, h("strong", {}, error.code ? `Error ${error.code}` : "Error"), h("pre", {}, error.message)));
  }

  #message(text) {
    fill(this.result, h("div", { class: "empty" }, h("p", {}, text)));
  }

  // ---------------------------------------------------------------------------------------------- views

  #mark(shown = null) {
    const possible = { table: this.table.columns.length > 0, chart: this.hasChart, plan: this.isPlan };
    for (const view of this.views) {
      view.disabled = !possible[view.dataset.view];
      view.setAttribute("aria-pressed", String(view.dataset.view === shown));
    }
  }

  // Show a view, and keep to it for later results.
  #choose(name) {
    if (name !== "plan") this.view = name;
    this.#show(name);
  }

  #show(name) {
    if (name === "table") fill(this.result, this.table.element);
    else if (name === "plan") fill(this.result, plan(this.table.parts.flatMap((part) => part.values[0])));
    else this.#showChart();
    this.#mark(name);
  }

  #showChart() {
    if (this.chart) {
      fill(this.result, this.chart.element);
      return;
    }
    const { sql } = this;
    this.chart = new Chart({
      load: (width, from, to, signal) => this.api.json("/console/chart", { method: "POST", json: { sql, width, from, to }, signal }),
      onError: (error) => this.#fail(error),
    });
    fill(this.result, this.chart.element);
    this.chart.refresh();
  }

  showHistory() {
    const past = stored("saros.history", []);
    const list = h("ul", { class: "history" });
    const draw = (wanted) => fill(list, past.filter((found) => found.sql.toLowerCase().includes(wanted.toLowerCase())).map((found) =>
      h("li", {}, h("button", { class: "history-entry", onclick: () => { dialog.close(); this.#take(found.sql); } },
        h("code", {}, found.sql), h("span", { class: "muted" }, new Date(found.at).toLocaleString())))));
    const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search the history", oninput: () => draw(search.value) });
    const dialog = h("dialog", { class: "dialog wide", "aria-label": "History", onclose: () => dialog.remove() },
      h("form", { method: "dialog" }, h("div", { class: "dialog-head" }, h("h2", {}, "History"), search), past.length ? list : h("p", { class: "muted" }, "No statement has run yet."),
        h("div", { class: "actions" }, h("button", { class: "button", type: "button", onclick: () => { localStorage.removeItem("saros.history"); dialog.close(); } }, "Clear"), h("button", { class: "button primary" }, "Close"))));
    draw("");
    document.body.append(dialog);
    dialog.showModal();
  }

  #take(sql) {
    if (this.editor.text.trim()) this.add(sql);
    else this.editor.replace(sql);
    this.editor.focus();
  }

  destroy() {
    this.cancel();
    removeEventListener("keydown", this.onKey);
    this.editor.destroy();
    this.table.destroy();
    this.chart?.destroy();
  }
}

const nameOf = (text, at) => text.trim().split(/\s+/).slice(0, 6).join(" ").slice(0, 28) || `Statement ${at + 1}`;

function show(root, api, route) {
  const page = new QueryPage(root, api);
  if (route) {
    page.add(route);
    page.run();
    history.replaceState(null, "", "#/query");
  }
  return () => page.destroy();
}

export const query = { id: "query", title: "Query", icon: "M4 17l6-5-6-5M12 19h8", show };
