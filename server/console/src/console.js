// The console: logs in, shows the navigation and the page of the address (#/id/rest), themes, shortcuts, messages.

import { Api } from "./api.js";
import { button, fill, h, icon } from "./dom.js";
import { PAGES } from "./pages.js";

const ICONS = {
  theme: "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z",
  keys: "M4 6h16a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM7 10h.01M11 10h.01M15 10h.01M8 14h8",
  out: "M15 4h4v16h-4M10 8l-4 4 4 4M6 12h10",
  close: "M6 6l12 12M18 6L6 18",
};
const MESSAGE_MS = 12_000;
const SHORTCUTS = [
  ["?", "show this list"],
  ["Alt 1 ... Alt 9", "open a page"],
  ["Alt T", "switch between dark and light"],
  ["Ctrl Enter", "run the statement, or the selection"],
  ["Esc", "cancel the statement; close a dialog"],
  ["Ctrl Space", "complete"],
  ["Alt N", "new tab"],
  ["+ - ← → Home", "zoom and move in a chart"],
  ["↑ ↓ ← →", "walk through the tree of Explore"],
];

const toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
const api = new Api({ onLoggedOut: () => logIn("The session has ended."), onError: (error) => toast(error.message, "bad") });
let dispose = null;
let shownId = null;

// Show a message for a while.
function toast(text, kind = "") {
  const shown = h("div", { class: `toast ${kind}` }, h("span", {}, text), button(icon(ICONS.close), () => shown.remove(), { label: "Dismiss", kind: "quiet" }));
  toasts.append(shown);
  setTimeout(() => shown.remove(), MESSAGE_MS);
}
api.notify = toast;

function brand() {
  return h("span", { class: "brand" }, h("img", { src: "icon.svg", alt: "", width: 24, height: 24 }), "Saros");
}

// ------------------------------------------------------------------------------------------------ theme

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("saros.theme", theme);
  dispatchEvent(new Event("saros-theme"));
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light");
const switchTheme = () => setTheme(theme() === "dark" ? "light" : "dark");
prefersDark.addEventListener("change", () => dispatchEvent(new Event("saros-theme")));

// ------------------------------------------------------------------------------------------------ login

function logIn(message = "") {
  leave();
  const user = h("input", { name: "user", autocomplete: "username", required: true, autofocus: true });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const failure = h("p", { class: "failure", role: "alert" }, message);
  const enter = async (event) => {
    event.preventDefault();
    fill(failure);
    try {
      await start(await api.json("/console/login", { method: "POST", json: { user: user.value, password: password.value } }));
    } catch (error) {
      fill(failure, error.message);
      password.value = "";
      password.focus();
    }
  };
  fill(document.body, h("main", { class: "login" }, h("form", { class: "card", onsubmit: enter }, h("h1", {}, brand()),
    h("label", {}, "User", user), h("label", {}, "Password", password), failure,
    h("button", { class: "button primary" }, "Log in"))), toasts);
  user.focus();
}

async function logOut() {
  await api.guarded(() => api.json("/console/logout", { method: "POST", json: {} }));
  location.reload();
}

function sayNoTicket() {
  fill(document.body, h("main", { class: "login" }, h("div", { class: "card" }, h("h1", {}, brand()),
    h("p", {}, "This console belongs to the browser that saros console has opened."),
    h("p", {}, "Run saros console again, and open the link that it prints."))));
}

// ------------------------------------------------------------------------------------------------ frame

const main = h("main", { id: "main", tabindex: -1 });

function frame(session) {
  const links = PAGES.map((page, at) => h("a", { href: `#/${page.id}`, "data-page": page.id, title: `${page.title} (Alt ${at + 1})` }, icon(page.icon), h("span", {}, page.title)));
  const skip = h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the page");
  fill(document.body, skip, h("header", { class: "bar" }, brand(),
    h("nav", { "aria-label": "Pages" }, links),
    h("div", { class: "tools" },
      h("span", { class: "who", title: `version ${session.version}` }, session.user || "no login"),
      button(icon(ICONS.keys), showShortcuts, { label: "Shortcuts (?)", kind: "quiet" }),
      button(icon(ICONS.theme), switchTheme, { label: "Dark or light (Alt T)", kind: "quiet" }),
      session.user ? button(icon(ICONS.out), logOut, { label: "Log out", kind: "quiet" }) : null)), main, toasts);
}

function leave() {
  dispose?.();
  dispose = null;
}

function showPage() {
  if (!main.isConnected) return;
  const [id, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const page = PAGES.find((found) => found.id === id) ?? PAGES[0];
  const route = rest.map(decodeURIComponent).join("/");
  if (page.id === shownId && dispose?.follow) {
    dispose.follow(route);
    return;
  }
  const hadFocus = main.contains(document.activeElement);
  leave();
  shownId = page.id;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === page.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page.title} · Saros`;
  main.className = `page page-${page.id}`;
  fill(main, h("h1", { class: "hidden-title" }, page.title));
  if (hadFocus) main.focus();
  dispose = page.show(main, api, route) ?? null;
}

function showShortcuts() {
  const dialog = h("dialog", { class: "dialog", onclose: () => dialog.remove(), "aria-label": "Shortcuts" },
    h("form", { method: "dialog" }, h("h2", {}, "Shortcuts"),
      h("dl", { class: "keys" }, SHORTCUTS.map(([keys, text]) => [h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, text)])),
      h("div", { class: "actions" }, h("button", { class: "button primary" }, "Close"))));
  document.body.append(dialog);
  dialog.showModal();
}

function isTyping(event) {
  return event.composedPath()[0]?.closest?.("input, textarea, select, [contenteditable=true]") !== null;
}

addEventListener("keydown", (event) => {
  if (!main.isConnected) return;
  if (event.altKey && !event.ctrlKey && /^Digit[1-9]$/.test(event.code) && PAGES[event.code.at(-1) - 1]) {
    event.preventDefault();
    location.hash = `#/${PAGES[event.code.at(-1) - 1].id}`;
  } else if (event.altKey && event.code === "KeyT") {
    event.preventDefault();
    switchTheme();
  } else if (event.key === "?" && !isTyping(event) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    showShortcuts();
  }
});
addEventListener("hashchange", showPage);

async function start(session) {
  api.session = session;
  if (session.state === "login") logIn();
  else if (session.state === "ticket") sayNoTicket();
  else {
    frame(session);
    showPage();
  }
}

async function boot() {
  document.documentElement.dataset.theme = localStorage.getItem("saros.theme") ?? "";
  const ticket = location.hash.match(/^#ticket=(.+)$/)?.[1];
  if (ticket) {
    history.replaceState(null, "", location.pathname); // it must not stay in the history
    try {
      await start(await api.json("/console/ticket", { method: "POST", json: { ticket } }));
      return;
    } catch (error) {
      document.body.append(toasts);
      toast(error.message, "bad");
    }
  }
  try {
    await start(await api.json("/console/session"));
  } catch (error) {
    fill(document.body, h("main", { class: "login" }, h("div", { class: "card" }, h("h1", {}, brand()), h("p", { role: "alert" }, error.message))));
  }
}

boot();
