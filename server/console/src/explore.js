// The page Explore: the tree of the schema, loaded level by level, and details of a node, a device, or a series.

import { Chart } from "./chart.js";
import { button, fill, h, icon, sparkline, table } from "./dom.js";
import { lastNode, parentPath, quoted, quotedNode } from "./sql.js";

const SEARCH_MAX = 200;
const SERIES_MAX = 200;
const LEVEL_MAX = 500;
// The most series of a chart that the node computes.
const CHART_SERIES_MAX = 40;
const SPARK_PIXELS = 60;
const SEARCH_PAUSE_MS = 250;
const LIVE_MS = 1_000;
const LIVE_POINTS = 2_000;
const LIVE_ROWS = 50;
const NUMERIC = new Set(["INT32", "INT64", "FLOAT", "DOUBLE"]);
const CHEVRON = "M9 6l6 6-6 6";

const encoded = (path) => `#/explore/${encodeURIComponent(path)}`;
const number = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 6 }) : value ?? "");
const isSeries = (type) => type === "TIMESERIES";

class ExplorePage {
  constructor(root, api, path) {
    this.api = api;
    this.end = new AbortController();
    this.abort = new AbortController();
    this.path = path || "root";
    this.search = h("input", { type: "search", placeholder: "Search series", "aria-label": "Search series", oninput: () => this.#searchSoon() });
    this.list = h("div", { class: "tree", onkeydown: (event) => this.#treeKey(event), onfocusin: (event) => this.#rove(event.target) });
    this.detail = h("section", { class: "detail", "aria-label": "Details", "aria-live": "off", tabindex: -1 });
    root.append(h("aside", { class: "tree-side" }, this.search, this.list), this.detail);
    this.#showTree();
    this.api.guarded(() => this.#showDetail());
  }

  // Show another path; the tree stays as it is, and opens the path if it is not below a closed node.
  follow(path) {
    this.#stopLive();
    this.chart?.destroy();
    this.chart = this.chartPlace = null;
    this.abort.abort();
    this.abort = new AbortController();
    this.path = path || "root";
    const hadFocus = this.detail.contains(document.activeElement);
    for (const link of this.list.querySelectorAll(".tree-link")) {
      if (link.title === this.path) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (!this.search.value.trim() && this.path !== "root" && !this.list.querySelector("[aria-current]")) this.#showTree();
    if (hadFocus) this.detail.focus();
    this.detail.scrollTo(0, 0);
    this.api.guarded(() => this.#showDetail());
  }

  // Return the rows for the details, which another path cancels; the tree passes the signal of the page.
  rows(sql, signal = this.abort.signal) {
    return this.api.rows(sql, { signal });
  }

  // ---------------------------------------------------------------------------------------------- tree

  #showTree() {
    const tree = h("ul", { class: "tree-list" });
    fill(this.list, tree);
    this.api.guarded(() => this.#fillLevel(tree, "root"));
  }

  async #fillLevel(list, path) {
    const rows = await this.rows(`show child paths ${path}`, this.end.signal);
    fill(list, rows.length ? null : h("li", { class: "muted none" }, path === "root" ? "There is no data yet." : "empty"));
    this.#growLevel(list, rows, Math.max(LEVEL_MAX, 1 + rows.findIndex((row) => this.#isAbove(row.ChildPaths))));
  }

  // Append the first `count` nodes of a level, and a button for the next ones; return the first element.
  #growLevel(list, rows, count) {
    const items = rows.slice(0, count).map((row) => this.#branch(row.ChildPaths, row.NodeTypes));
    list.append(...items);
    this.#rove(this.list.querySelector(".tree-link[tabindex='0']") ?? this.list.querySelector(".tree-link"));
    const rest = rows.slice(count);
    if (rest.length) {
      const grow = () => {
        more.remove();
        this.#growLevel(list, rest, LEVEL_MAX).querySelector("a").focus();
      };
      const more = h("li", { class: "tree-more" }, button(`Show more (${number(rest.length)} left)`, grow, { kind: "small" }));
      list.append(more);
    }
    return items[0];
  }

  // Make one link of the tree the only one in the order of Tab; arrows reach the others.
  #rove(link) {
    if (!link?.matches(".tree-link")) return;
    for (const other of this.list.querySelectorAll(".tree-link[tabindex='0']")) other.tabIndex = -1;
    link.tabIndex = 0;
  }

  // Up, down, Home and End walk through the nodes in sight; right opens a node, left closes it or goes to its parent.
  #treeKey(event) {
    const stops = [...this.list.querySelectorAll(".tree-link, .tree-more button")].filter((stop) => !stop.closest("[hidden]"));
    const at = stops.indexOf(event.target);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const item = event.target.closest("li");
    const toggle = item.querySelector(":scope > .tree-row > .tree-toggle");
    const isOpen = toggle?.getAttribute("aria-expanded") === "true";
    let target = { ArrowDown: stops[at + 1], ArrowUp: stops[at - 1], Home: stops[0], End: stops.at(-1) }[event.key];
    if (event.key === "ArrowRight" && isOpen) target = item.querySelector(":scope > ul .tree-link");
    else if (event.key === "ArrowLeft" && !isOpen) target = item.parentElement.closest("li")?.querySelector(".tree-link");
    else if (["ArrowLeft", "ArrowRight"].includes(event.key)) toggle?.click();
    else if (!["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    target?.focus();
  }

  // Return whether the chosen path is a node or below it.
  #isAbove(path) {
    return this.path === path || this.path.startsWith(`${path}.`);
  }

  #branch(path, type) {
    const children = h("ul", { hidden: true });
    const toggle = isSeries(type) ? h("span", { class: "tree-leaf" }) : button(icon(CHEVRON), () => this.#toggle(toggle, children, path), { kind: "quiet tree-toggle", label: `Open ${path}`, "aria-expanded": "false", tabindex: -1 });
    const link = h("a", { href: encoded(path), class: "tree-link", title: path, tabindex: -1, "aria-current": path === this.path ? "true" : null }, lastNode(path), type === "INTERNAL" ? null : h("span", { class: "badge" }, isSeries(type) ? "series" : type.toLowerCase()));
    const item = h("li", {}, h("div", { class: "tree-row" }, toggle, link), isSeries(type) ? null : children);
    if (!isSeries(type) && this.#isAbove(path)) this.#toggle(toggle, children, path);
    return item;
  }

  #toggle(toggle, children, path) {
    const opens = children.hidden;
    children.hidden = !opens;
    toggle.setAttribute("aria-expanded", String(opens));
    if (opens) this.api.guarded(() => this.#fillLevel(children, path));
    else if (children.querySelector("[tabindex='0']")) this.#rove(children.parentElement.querySelector(".tree-link"));
  }

  #searchSoon() {
    clearTimeout(this.searchTimer);
    this.searchTimer = setTimeout(() => this.api.guarded(() => this.#find(this.search.value.trim())), SEARCH_PAUSE_MS);
  }

  async #find(wanted) {
    if (!wanted) {
      this.#showTree();
      return;
    }
    const rows = await this.rows(`show timeseries root.** where timeseries contains ${quoted(wanted)} limit ${SEARCH_MAX}`, this.end.signal);
    if (this.search.value.trim() !== wanted) return;
    fill(this.list, rows.length
      ? h("ul", { class: "tree-list found" }, rows.map((row, at) => h("li", {}, h("a", { class: "tree-link", tabindex: at ? -1 : 0, href: encoded(row.Timeseries), title: row.Timeseries }, row.Timeseries))))
      : h("p", { class: "muted none" }, "No series has this in its path."),
    rows.length === SEARCH_MAX ? h("p", { class: "muted none" }, `The first ${SEARCH_MAX}; search for more of the path.`) : null);
  }

  // ---------------------------------------------------------------------------------------------- details

  async #showDetail() {
    const { path } = this;
    fill(this.detail, this.#heading(path));
    if (path === "root") await this.#showNode(path);
    else {
      const [series] = await this.rows(`show timeseries ${path}`);
      if (series) await this.#showSeries(series);
      else {
        const [device] = await this.rows(`show devices ${path}`);
        await (device ? this.#showDevice(device) : this.#showNode(path));
      }
    }
  }

  #heading(path, ...badges) {
    return h("header", { class: "detail-head" }, h("h2", { class: "mono" }, path), badges.map((text) => h("span", { class: "badge" }, text)));
  }

  async #showNode(path) {
    const counted = async (what) => (await this.rows(`count ${what} ${path}.**`))[0];
    const [series, devices] = await Promise.all([counted("timeseries"), counted("devices")]);
    fill(this.detail, this.#heading(path), facts([["Series", number(Object.values(series)[0])], ["Devices", number(Object.values(devices)[0])]]),
      h("p", { class: "muted" }, path !== "root" || Object.values(series)[0] ? "Choose a device or a series." : ["There is no series yet. ", h("a", { href: "#/import" }, "Import"), " a file, or write points in ", h("a", { href: "#/query" }, "Query"), "."]));
  }

  async #showDevice(device) {
    const path = device.Device;
    const [series, [count]] = await Promise.all([this.rows(`show timeseries ${path}.* limit ${SERIES_MAX}`), this.rows(`count timeseries ${path}.*`)]);
    const names = series.map((found) => lastNode(found.Timeseries));
    const last = names.length ? await this.rows(`select last ${names.join(", ")} from ${path}`) : [];
    const latest = new Map(last.map((row) => [row.Timeseries, row]));
    const lines = new Map();
    const rows = series.map((found) => {
      const line = h("div", { class: "spark" });
      lines.set(found.Timeseries, line);
      const row = latest.get(found.Timeseries);
      return [h("a", { href: encoded(found.Timeseries), class: "mono" }, lastNode(found.Timeseries)), found.DataType, row ? h("span", { class: "mono clip" }, row.Value) : "", row ? h("span", { class: "mono" }, row.Time) : "", line, found.Tags ? tags(found.Tags) : ""];
    });
    fill(this.detail, this.#heading(path, device.IsAligned === "true" ? "aligned device" : "device", ...(device.Template ? [`template ${device.Template}`] : [])),
      this.#actions(`select * from ${path}`),
      table(["Series", "Type", "Last value", "Last time (UTC)", "Trend", "Tags"], rows, { caption: "Series" }),
      series.length === SERIES_MAX ? h("p", { class: "muted" }, `The first ${SERIES_MAX} of ${number(Object.values(count)[0])} series; search for the others.`) : null);
    for (let at = 0; at < names.length; at += CHART_SERIES_MAX) {
      const chart = await this.#chartOf(`select ${names.slice(at, at + CHART_SERIES_MAX).join(", ")} from ${path}`, SPARK_PIXELS);
      for (const found of chart.series) {
        const line = lines.get(found.name);
        if (line) fill(line, sparkline(found.values.map((value) => value ?? Number.NaN)));
      }
    }
  }

  #chartOf(sql, width, from = null, to = null, signal = this.abort.signal) {
    return this.api.json("/console/chart", { method: "POST", json: { sql, width, from, to }, signal });
  }

  #actions(sql, ...more) {
    return h("div", { class: "detail-actions" }, h("a", { class: "button small", href: `#/query/${encodeURIComponent(sql)}` }, "Query"), more);
  }

  async #showSeries(series) {
    const path = series.Timeseries;
    const [name, parent] = [quotedNode(lastNode(path)), parentPath(path)];
    const isNumeric = NUMERIC.has(series.DataType);
    const sql = `select ${name} from ${parent}`;
    this.live = button("Live", () => this.#toggleLive(series, sql), { kind: "small", "aria-pressed": "false", title: "Follow new points" });
    const statistics = h("div");
    const place = h("div", { class: "series-chart" });
    fill(this.detail, this.#heading(path, series.DataType, ...(series.ViewType === "VIEW" ? ["view"] : [])), this.#actions(sql, this.live), statistics,
      isNumeric ? place : null, this.liveList = h("div"),
      h("h3", {}, "Storage"), facts([["Encoding", series.Encoding], ["Compression", series.Compression], ["Database", series.Database], ["Alias", series.Alias], ["Deadband", series.Deadband]]),
      series.Tags ? [h("h3", {}, "Tags"), tags(series.Tags)] : null, series.Attributes ? [h("h3", {}, "Attributes"), tags(series.Attributes)] : null);
    const calls = ["count", "min_time", "max_time", "last_value", ...(isNumeric ? ["min_value", "max_value", "avg"] : [])];
    const [row] = await this.rows(`select ${calls.map((call) => `${call}(${name})`).join(", ")} from ${parent}`);
    const [count, first, last, value, ...more] = Object.values(row ?? {});
    fill(statistics, facts([["Points", number(count ?? 0)], ["Last value", number(value)], ["Smallest", number(more[0])], ["Largest", number(more[1])], ["Average", number(more[2])], ["First time", timeText(first, this.api)], ["Last time", timeText(last, this.api)]]));
    this.lastTime = last ?? null;
    if (isNumeric && count) this.#draw(place, (width, from, to, signal) => this.#chartOf(sql, width, from, to, signal));
  }

  #draw(place, load) {
    this.chart?.destroy();
    this.chart = new Chart({ load, onError: (error) => this.api.onError(error) });
    this.chartPlace = place;
    fill(place, this.chart.element);
    this.chart.refresh();
  }

  // ---------------------------------------------------------------------------------------------- live

  #toggleLive(series, sql) {
    const starts = !this.liveTimer;
    this.live.setAttribute("aria-pressed", String(starts));
    if (!starts) {
      this.#stopLive();
      fill(this.liveList);
      this.#showDetail();
      return;
    }
    this.points = { times: [], values: [] };
    if (NUMERIC.has(series.DataType) && this.chartPlace) {
      this.#draw(this.chartPlace, async () => ({ from: this.points.times[0] ?? 0, to: this.points.times.at(-1) ?? 1, series: [{ name: series.Timeseries, ...this.points }], hidden: 0, is_reduced: false }));
    }
    const poll = async () => {
      await this.api.guarded(() => this.#poll(sql));
      if (this.liveTimer) this.liveTimer = setTimeout(poll, LIVE_MS);
    };
    this.liveTimer = setTimeout(poll, 0);
  }

  async #poll(sql) {
    const after = this.lastTime === null ? "" : ` where time > ${this.lastTime}`;
    const rows = await this.rows(`${sql}${after} limit ${LIVE_POINTS}`);
    if (!this.liveTimer) return;
    for (const row of rows) {
      const [time, value] = Object.values(row);
      this.lastTime = time;
      this.points.times.push(Date.parse(time));
      this.points.values.push(value);
    }
    for (const list of [this.points.times, this.points.values]) list.splice(0, list.length - LIVE_POINTS);
    if (rows.length || !this.liveList.childElementCount) {
      const shown = this.points.times.slice(-LIVE_ROWS).map((ms, at, all) => [new Date(ms).toISOString(), h("span", { class: "mono" }, number(this.points.values[this.points.values.length - all.length + at]))]).reverse();
      fill(this.liveList, h("h3", {}, "New points"), shown.length ? table(["Time (UTC)", "Value"], shown, { caption: "New points" }) : h("p", { class: "muted" }, "Waiting for new points ..."));
      if (rows.length) this.chart?.refresh();
    }
  }

  #stopLive() {
    clearTimeout(this.liveTimer);
    this.liveTimer = null;
  }

  destroy() {
    this.#stopLive();
    clearTimeout(this.searchTimer);
    this.abort.abort();
    this.end.abort();
    this.chart?.destroy();
  }
}

function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function tags(json) {
  let found = {};
  try {
    found = JSON.parse(json);
  } catch {
    found = { tags: json };
  }
  return h("span", { class: "tag-list" }, Object.entries(found).map(([key, value]) => h("span", { class: "badge" }, `${key}=${value}`)));
}

// Return a time of the database, an integer in its unit, as a text.
function timeText(ticks, api) {
  if (ticks === null || ticks === undefined) return "";
  const date = new Date(Number(ticks) / { ms: 1, us: 1e3, ns: 1e6 }[api.session.time_unit]);
  return Number.isNaN(date.getTime()) ? String(ticks) : date.toISOString().replace(".000Z", "Z").replace("T", " ");
}

function show(root, api, route) {
  const page = new ExplorePage(root, api, route);
  return Object.assign(() => page.destroy(), { follow: (path) => page.follow(path) });
}

export const explore = { id: "explore", title: "Explore", icon: "M5 4v14h6M5 9h6M15 7h5v4h-5zM15 16h5v4h-5z", show };
