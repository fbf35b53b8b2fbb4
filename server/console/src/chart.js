// A chart of series over time. The node reduces them to the pixels; zooming in asks it for more detail.

import uPlot from "uplot";
import { isAbort } from "./api.js";
import { button, fill, h } from "./dom.js";

const COLORS = 8;
const BRUSH_HEIGHT = 46;
const AXES_MAX = 4;
// Labels of the axis of time: 24 hours, ISO dates. [increment, label, ..., at changes of year, month, day, minute]
const LABELS = [
  [31_536e6, "{YYYY}", null, null, null, null, null, null, 1],
  [2_419.2e6, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
  [86.4e6, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [6e4, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1e3, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, ":{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
];
const utc = (ms) => uPlot.tzDate(new Date(ms), "Etc/UTC");

// Return the value of a variable of the style sheet as a colour that a canvas takes.
function color(name) {
  const probe = h("span", { hidden: true, style: { color: `var(${name})` } });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const faded = (rgb) => rgb.replace("rgb(", "rgba(").replace(")", ", 0.14)");

// Put series with times of their own onto common ones; a value of NaN, which JSON has as null, is a gap.
function joined(series) {
  const tables = series.map((found) => [found.times, found.values]);
  return tables.length ? uPlot.join(tables, tables.map(() => [1, 2])) : [[]];
}

export class Chart {
  // `load(width, from, to, signal)` returns what the node's /console/chart does; `onError(error)`.
  constructor({ load, onError }) {
    this.load = load;
    this.onError = onError;
    this.separate = false;
    this.range = null;
    this.plot = this.brush = null;
    this.note = h("span", { class: "muted chart-note" });
    this.axes = button("Axis per series", () => this.#toggleAxes(), { "aria-pressed": "false", kind: "small" });
    this.reset = button("Whole range", () => this.#zoom(null), { kind: "small", disabled: true });
    this.area = h("div", { class: "chart-area", role: "group", tabindex: 0, "aria-label": "Chart of the result; plus and minus zoom, arrows move", onkeydown: (event) => this.#key(event) });
    this.overview = h("div", { class: "chart-brush", "aria-hidden": "true" });
    this.element = h("div", { class: "chart" }, h("div", { class: "chart-tools" }, this.axes, this.reset, this.note), this.area, this.overview);
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.area);
    this.onTheme = () => this.#build();
    addEventListener("saros-theme", this.onTheme);
  }

  // Load all, or the range that is shown, and draw it.
  async refresh() {
    this.abort?.abort();
    this.abort = new AbortController();
    const width = Math.max(Math.round((this.area.clientWidth || 800) * devicePixelRatio), 100);
    fill(this.note, "loading ...");
    const began = performance.now();
    const timer = setInterval(() => fill(this.note, `reading the points: ${Math.floor((performance.now() - began) / 1000)} s`), 1000);
    try {
      const found = await this.load(width, this.range?.[0] ?? null, this.range?.[1] ?? null, this.abort.signal);
      this.found = found;
      if (!this.range) this.whole = found;
      const points = found.series.reduce((sum, series) => sum + series.times.length, 0);
      const hidden = found.hidden ? `; ${found.hidden} more series are not shown` : "";
      const kind = found.is_reduced ? "reduced to the pixels" : "all points";
      fill(this.note, found.series.length ? `${points.toLocaleString("en")} points, ${kind}, ${Math.round(performance.now() - began)} ms${hidden}. UTC. Drag to zoom, or press + and −.` : "The result has no numbers to draw.");
      this.#build();
    } catch (error) {
      if (isAbort(error)) return;
      fill(this.note);
      this.onError(error);
    } finally {
      clearInterval(timer);
    }
  }

  #toggleAxes() {
    this.separate = !this.separate;
    this.axes.setAttribute("aria-pressed", String(this.separate));
    this.#build();
  }

  #zoom(range) {
    this.range = range;
    if (!range && this.reset === document.activeElement) this.area.focus();
    this.reset.disabled = range === null;
    this.refresh();
  }

  // Zoom by + and -, move by arrows, show all by Home, as far as there are points.
  #key(event) {
    if (!this.whole || event.altKey || event.ctrlKey || event.metaKey) return;
    const [first, last] = [this.whole.from, this.whole.to + 1];
    const [low, high] = this.range ?? [first, last];
    const [width, middle] = [high - low, (low + high) / 2];
    const around = (center, wanted) => [center - wanted / 2, center + wanted / 2];
    const wanted = { "+": around(middle, width / 2), "=": around(middle, width / 2), "-": around(middle, width * 2), ArrowLeft: around(middle - width / 4, width), ArrowRight: around(middle + width / 4, width), Home: [first, last] }[event.key];
    if (!wanted) return;
    event.preventDefault();
    const size = Math.min(wanted[1] - wanted[0], last - first);
    if (size < 2) return;
    const from = Math.round(Math.min(Math.max(wanted[0], first), last - size));
    this.#zoom(size >= last - first ? null : [from, Math.round(from + size)]);
  }

  #build() {
    this.plot?.destroy();
    this.brush?.destroy();
    this.plot = this.brush = null;
    if (!this.found?.series.length || !this.area.clientWidth) return;
    this.plot = new uPlot(this.#options(), joined(this.found.series), this.area);
    this.#fit();
    this.brush = new uPlot(this.#brushOptions(), joined(this.whole.series), this.overview);
    this.#showRange();
  }

  #options() {
    const { series } = this.found;
    const [text, line] = [color("--muted"), color("--line")];
    const scaleOf = (at) => (this.separate ? `y${at}` : "y");
    const axis = (more) => ({ stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif", ...more });
    const ys = this.separate ? series.slice(0, AXES_MAX).map((_, at) => axis({ scale: `y${at}`, side: at % 2 ? 1 : 3, stroke: color(`--series-${(at % COLORS) + 1}`), grid: { show: at === 0, stroke: line, width: 1 }, size: 60 })) : [axis({ scale: "y", size: 60 })];
    return {
      width: this.area.clientWidth,
      height: this.#height(),
      ms: 1,
      tzDate: utc,
      scales: { x: { time: true, range: [this.found.from, Math.max(this.found.to, this.found.from + 1)] } },
      axes: [axis({ values: LABELS, space: 70 }), ...ys],
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      legend: { live: true },
      series: [
        { label: "Time", value: (_, ms) => (ms === null ? "" : new Date(ms).toISOString().replace(".000Z", "Z")) },
        ...series.map((found, at) => {
          const stroke = color(`--series-${(at % COLORS) + 1}`);
          return { label: found.name, scale: scaleOf(at), stroke, fill: series.length === 1 ? faded(stroke) : undefined, width: 1.5, spanGaps: false, dash: at >= COLORS ? [6, 3] : undefined, points: { show: found.times.length < 100, size: 5 }, value: (_, value) => (value === null || value === undefined ? "" : Number(value.toPrecision(8)).toString()) };
        }),
      ],
      hooks: { setSelect: [(plot) => this.#selected(plot)] },
    };
  }

  #selected(plot) {
    if (plot.select.width < 4) return;
    const range = [plot.select.left, plot.select.left + plot.select.width].map((left) => Math.round(plot.posToVal(left, "x")));
    if (range[1] > range[0]) this.#zoom([range[0], range[1] + 1]);
  }

  #brushOptions() {
    return {
      width: this.overview.clientWidth,
      height: BRUSH_HEIGHT,
      ms: 1,
      scales: { x: { time: true, range: [this.whole.from, Math.max(this.whole.to, this.whole.from + 1)] } },
      axes: [{ show: false }, { show: false }],
      padding: [4, 8, 4, 60],
      legend: { show: false },
      cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      series: [{}, ...this.whole.series.map((_, at) => ({ scale: `y${at}`, stroke: color(`--series-${(at % COLORS) + 1}`), width: 1, points: { show: false } }))],
      hooks: { setSelect: [(plot) => !this.isShowing && this.#selected(plot)] },
    };
  }

  // Mark the range of the chart in the overview.
  #showRange() {
    if (!this.brush || !this.range) return;
    const [low, high] = this.range.map((ms) => this.brush.valToPos(ms, "x"));
    this.isShowing = true;
    this.brush.setSelect({ left: low, width: Math.max(high - low, 2), top: 0, height: this.brush.over.clientHeight }, false);
    this.isShowing = false;
  }

  #height() {
    const legend = this.plot?.root.querySelector(".u-legend")?.offsetHeight ?? 34;
    return Math.max(this.area.clientHeight - legend, 140);
  }

  // Give the chart the height that its legend leaves.
  #fit() {
    this.plot.setSize({ width: this.area.clientWidth, height: this.#height() });
  }

  #resize() {
    if (!this.plot || !this.area.clientWidth) return;
    this.#fit();
    this.brush.setSize({ width: this.overview.clientWidth, height: BRUSH_HEIGHT });
    this.#showRange();
  }

  destroy() {
    this.abort?.abort();
    this.observer.disconnect();
    removeEventListener("saros-theme", this.onTheme);
    this.plot?.destroy();
    this.brush?.destroy();
  }
}
