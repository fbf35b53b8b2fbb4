// Panels: titled parts of a page whose content comes from the node, and is loaded again while the page is visible.

import { isAbort } from "./api.js";
import { fill, h } from "./dom.js";

const NO_PERMISSION = 803;
const CONTROLS = "a, button, input, select, [tabindex]";

// Make a panel. `actions`: elements beside the title; `note`: a sentence below it.
export function panel(title, { note, actions = [] } = {}) {
  const body = h("div", { class: "panel-body" }, h("p", { class: "muted" }, "Loading ..."));
  const element = h("section", { class: "card panel", "aria-label": title, tabindex: -1 },
    h("header", {}, h("h2", {}, title), h("div", { class: "panel-actions" }, actions)),
    note ? h("p", { class: "muted" }, note) : null, body);

  // Show what an async function returns, or a sentence for its error. What the user may not see is not asked for
  // again: the node's audit trail has a line for each refusal.
  let isRefused = false;
  async function load(run) {
    if (isRefused) return;
    try {
      refill(body, await run());
    } catch (error) {
      isRefused = error.code === NO_PERMISSION;
      if (!isAbort(error)) fill(body, h("p", { class: "muted" }, sentence(error)));
    }
  }
  return { element, body, load, get isRefused() { return isRefused; } };
}

// Say why something is not shown.
export function sentence(error) {
  if (error.code !== NO_PERMISSION) return error.message;
  if (error.message.includes("an administrator")) return "Only administrators may see this.";
  return `${error.message.replace(/^No permission for this operation: /, "You may not see this: ")}. An administrator can grant it.`;
}

const keyOf = (control) => control.dataset.key ?? control.getAttribute("aria-label") ?? control.textContent;

// Replace the content of an element; the focus stays on the control with the same data-key, label, or text, or else goes
// to the region, and tables stay scrolled.
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const scrolled = [...element.querySelectorAll(".table-frame")].map((frame) => [frame.scrollLeft, frame.scrollTop]);
  fill(element, ...children);
  [...element.querySelectorAll(".table-frame")].forEach((frame, at) => {
    if (scrolled[at]) [frame.scrollLeft, frame.scrollTop] = scrolled[at];
  });
  if (focused) ([...element.querySelectorAll(CONTROLS)].find((control) => keyOf(control) === keyOf(focused)) ?? element.closest("section, main"))?.focus();
}

// Call an async function now and every `ms` after it is done, while the page is visible. Return the function that ends
// it; `run` gets a signal that is aborted then.
export function watch(run, ms) {
  const end = new AbortController();
  let timer = 0;
  let isRunning = false;
  async function turn() {
    clearTimeout(timer);
    if (isRunning || end.signal.aborted || document.hidden) return;
    isRunning = true;
    try {
      await run(end.signal);
    } finally {
      isRunning = false;
    }
    if (!end.signal.aborted) timer = setTimeout(turn, ms);
  }
  document.addEventListener("visibilitychange", turn);
  turn();
  const stop = () => {
    end.abort();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", turn);
  };
  stop.now = turn;
  return stop;
}

// ------------------------------------------------------------------------------------------------ texts

const WHOLE = new Intl.NumberFormat("en");

// A number with separators; an empty text for what is not known.
export const count = (value) => (value === null || value === undefined || value === "" ? "" : WHOLE.format(value));

// A number of bytes.
export function bytes(value) {
  if (value === null || value === undefined || value === "") return "";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let left = Number(value);
  let at = 0;
  for (; left >= 1000 && at < units.length - 1; at += 1) left /= 1000;
  return `${at ? left.toFixed(1) : left} ${units[at]}`;
}

// A time in ISO 8601 as people read it, in UTC.
export const moment = (iso) => (iso ? String(iso).replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)$/, "") : "");

// A length of time in seconds.
export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${count(Math.round(seconds / 86_400))} days`;
}

// A number with a word for it: 1 file, 2 files.
export const counted = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

// A bar of which a share is filled; `label`: its meaning.
export function meter(share, label) {
  const percent = Math.round(100 * Math.min(Math.max(share, 0), 1));
  return h("div", { class: "meter", role: "progressbar", "aria-label": label, "aria-valuenow": percent, "aria-valuemin": 0, "aria-valuemax": 100 },
    h("div", { style: { width: `${percent}%` } }));
}

// A figure with its name, for a row of figures.
export function figure(name, value, { kind = "", detail } = {}) {
  return h("div", { class: `figure ${kind}` }, h("span", { class: "muted" }, name), h("strong", {}, value), detail ? h("span", { class: "muted" }, detail) : null);
}
