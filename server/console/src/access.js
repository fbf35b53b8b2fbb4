// The page Access: users, roles, their privileges, API tokens, and the end of the audit trail.

import { button, confirmed, fill, h, table } from "./dom.js";
import { moment, panel, watch } from "./panel.js";
import { nodeName, quoted } from "./sql.js";

const AUDIT_MS = 5000;
const AUDIT_LINES = 100;
const EVERYWHERE = "root.**";
const PRIVILEGES = ["READ", "WRITE", "READ_DATA", "WRITE_DATA", "READ_SCHEMA", "WRITE_SCHEMA", "SYSTEM", "SECURITY", "MANAGE_DATABASE", "MANAGE_USER", "MANAGE_ROLE", "MAINTAIN", "USE_UDF", "USE_TRIGGER", "USE_CQ", "USE_PIPE", "USE_MODEL", "EXTEND_TEMPLATE", "ALL"];
const EVENTS = ["login", "denied", "schema", "users", "cluster", "delete", "load", "sync"];

function show(root, api) {
  const end = new AbortController();
  const container = h("div", { class: "panels" });
  root.append(container);
  const stops = [() => end.abort()];
  if (api.session.user) {
    const principals = principalsPanels(api, end.signal);
    container.append(h("div", { class: "access" }, principals.list, principals.detail), tokensPanel(api, end.signal));
  } else {
    container.append(h("section", { class: "card panel", "aria-label": "Users" }, h("header", {}, h("h2", {}, "Users")),
      h("p", {}, "This database has no users: everyone who can reach it here may do everything."),
      h("p", { class: "muted" }, "Start the server with --auth to create the first administrator.")));
  }
  const audit = auditPanel(api);
  stops.push(audit.stop);
  container.append(audit.element);
  return () => stops.forEach((stop) => stop());
}

// ------------------------------------------------------------------------------------------------ statements

// Run a statement that changes something; return its rows, or undefined after an error, which is shown.
const run = (api, sql, parameters = []) => api.guarded(() => api.rows(sql, { parameters }));

// A dialog with fields; resolves to their values, or null. `fields`: [{name, label, type, options, value}].
function ask(title, verb, fields) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => (field.options
      ? h("select", { name: field.name }, field.options.map((option) => h("option", { value: option, selected: option === field.value }, option)))
      : h("input", { name: field.name, type: field.type ?? "text", required: !field.optional, value: field.value ?? "", autocomplete: field.type === "password" ? "new-password" : "off", placeholder: field.placeholder })));
    const dialog = h("dialog", { class: "dialog", "aria-label": title, onclose: () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? Object.fromEntries(inputs.map((input) => [input.name, input.type === "checkbox" ? input.checked : input.value.trim()])) : null);
    } }, h("form", { method: "dialog" }, h("h2", {}, title),
      fields.map((field, at) => h("label", { class: field.type === "checkbox" ? "check" : "" }, field.label, inputs[at])),
      h("div", { class: "actions" }, h("button", { class: "button", value: "no", formnovalidate: true }, "Cancel"), h("button", { class: "button primary", value: "yes" }, verb))));
    document.body.append(dialog);
    dialog.showModal();
    inputs[0]?.focus();
  });
}

// ------------------------------------------------------------------------------------------------ users and roles

function principalsPanels(api, signal) {
  const state = { users: [], roles: [], chosen: { kind: "user", name: api.session.user }, may: { users: false, roles: false, grant: false } };
  const newUser = button("New user", createUser, { kind: "small", hidden: true });
  const newRole = button("New role", createRole, { kind: "small", hidden: true });
  const list = panel("Users and roles", { actions: [newUser, newRole] });
  const detail = panel("Privileges");
  const title = detail.element.querySelector("h2");

  async function names(sql, column, own) {
    try {
      return (await api.rows(sql, { signal })).map((row) => row[column]);
    } catch (error) {
      if (error.code === undefined) throw error;
      return own;
    }
  }

  // What the user may do, as far as buttons for it are shown; the node decides.
  async function loadRights() {
    const own = await api.rows(`list privileges of user ${nodeName(api.session.user)}`, { signal }).catch(() => []);
    const has = (privilege) => own.some((row) => row.Privileges === privilege);
    state.may = { users: has("MANAGE_USER"), roles: has("MANAGE_ROLE"), grant: own.some((row) => isTrue(row.GrantOption)) };
    newUser.hidden = !state.may.users;
    newRole.hidden = !state.may.roles;
  }

  async function load() {
    await loadRights();
    state.users = await names("list user", "User", [api.session.user]);
    state.roles = await names("list role", "Role", []);
    await list.load(async () => [listOf("Users", "user", state.users), listOf("Roles", "role", state.roles)]);
    await loadDetail();
  }

  function listOf(heading, kind, found) {
    const entry = (name) => h("li", {}, h("button", { type: "button", class: "entry", "data-key": `${kind} ${name}`, "aria-pressed": String(state.chosen.kind === kind && state.chosen.name === name), onclick: () => choose(kind, name) }, name, name === api.session.user && kind === "user" ? h("span", { class: "badge" }, "you") : null));
    return [h("h3", {}, heading), found.length ? h("ul", { class: "entries" }, found.map(entry)) : h("p", { class: "muted" }, "None, or none that you may see.")];
  }

  async function choose(kind, name) {
    state.chosen = { kind, name };
    await load();
  }

  async function loadDetail() {
    const { kind, name } = state.chosen;
    const of = `${kind} ${nodeName(name)}`;
    fill(title, `${kind === "user" ? "User" : "Role"} ${name}`);
    await detail.load(async () => {
      const privileges = await api.rows(`list privileges of ${of}`, { signal });
      const related = await names(kind === "user" ? `list role of ${of}` : `list user of ${of}`, kind === "user" ? "Role" : "User", []);
      return [actionsOf(kind, name), membership(kind, name, related), privilegesTable(kind, name, privileges)];
    });
  }

  function actionsOf(kind, name) {
    const { may } = state;
    const isUser = kind === "user";
    return h("div", { class: "panel-actions" },
      may.grant ? button("Grant privilege", () => grant(kind, name), { kind: "small" }) : null,
      isUser && may.roles ? button("Grant role", () => grantRole(name), { kind: "small", disabled: !state.roles.length }) : null,
      isUser && (may.users || name === api.session.user) ? button("Set password", () => setPassword(name), { kind: "small" }) : null,
      (isUser ? may.users : may.roles) ? button(`Drop ${kind}`, () => drop(kind, name), { kind: "danger small" }) : null);
  }

  function membership(kind, name, related) {
    const chip = (other) => {
      const [role, user] = kind === "user" ? [other, name] : [name, other];
      return h("span", { class: "chip" }, other, !state.may.roles ? null : button("×", () => change(`Revoke role ${role} from ${user}?`, "Revoke", `revoke role ${nodeName(role)} from ${nodeName(user)}`), { kind: "quiet", label: `Revoke role ${role} from ${user}` }));
    };
    return h("p", { class: "chips" }, h("span", { class: "muted" }, kind === "user" ? "Roles: " : "Held by: "), related.length ? related.map(chip) : "none");
  }

  function privilegesTable(kind, name, rows) {
    if (!rows.length) return h("p", { class: "muted" }, "No privileges.");
    const revoker = (row) => (row.Role ? h("span", { class: "badge" }, `by role ${row.Role}`)
      : !state.may.grant ? null : button("Revoke", () => change(`Revoke ${row.Privileges} on ${row.Path} from ${name}?`, "Revoke", `revoke ${row.Privileges.toLowerCase()} on ${row.Path} from ${kind} ${nodeName(name)}`), { kind: "danger small", label: `Revoke ${row.Privileges} on ${row.Path}`, "data-key": `${row.Privileges} ${row.Path}` }));
    return table(["Privilege", "Path", "May pass it on", ""], rows.map((row) => [row.Privileges, h("code", {}, row.Path), isTrue(row.GrantOption) ? "yes" : "no", h("div", { class: "actions-cell" }, revoker(row))]), { caption: `Privileges of ${name}` });
  }

  async function change(question, verb, sql) {
    if (question && !await confirmed(question, verb)) return;
    if (await run(api, sql)) api.notify("Done.");
    await load();
  }

  async function grant(kind, name) {
    const found = await ask(`Grant a privilege to ${name}`, "Grant", [
      { name: "privilege", label: "Privilege", options: PRIVILEGES },
      { name: "path", label: "Path: root.a.b, or root.a.** for all below", value: EVERYWHERE },
      { name: "option", label: "May pass it on", options: ["no", "yes"] }]);
    if (found) await change(null, "", `grant ${found.privilege.toLowerCase()} on ${found.path} to ${kind} ${nodeName(name)}${found.option === "yes" ? " with grant option" : ""}`);
  }

  async function grantRole(name) {
    const found = await ask(`Grant a role to ${name}`, "Grant", [{ name: "role", label: "Role", options: state.roles }]);
    if (found) await change(null, "", `grant role ${nodeName(found.role)} to ${nodeName(name)}`);
  }

  async function setPassword(name) {
    const found = await ask(`Set the password of ${name}`, "Set password", [{ name: "password", label: "New password, 12 characters or more; ends the sessions of this user", type: "password" }]);
    if (found && await run(api, `alter user ${nodeName(name)} set password ?`, [found.password])) api.notify("The password was set.");
  }

  async function drop(kind, name) {
    if (!await confirmed(`Drop ${kind} ${name}? Its privileges are lost${kind === "user" ? ", and its sessions end" : ""}.`, `Drop ${kind}`)) return;
    if (await run(api, `drop ${kind} ${nodeName(name)}`)) state.chosen = { kind: "user", name: api.session.user };
    await load();
  }

  async function createUser() {
    const found = await ask("New user", "Create user", [{ name: "name", label: "Name" }, { name: "password", label: "Password, 12 characters or more", type: "password" }]);
    if (found && await run(api, `create user ${nodeName(found.name)} ?`, [found.password])) await choose("user", found.name);
  }

  async function createRole() {
    const found = await ask("New role", "Create role", [{ name: "name", label: "Name" }]);
    if (found && await run(api, `create role ${nodeName(found.name)}`)) await choose("role", found.name);
  }

  load().catch(() => undefined);
  return { list: list.element, detail: detail.element };
}

const isTrue = (value) => value === true || value === "true";

// ------------------------------------------------------------------------------------------------ tokens

function tokensPanel(api, signal) {
  const secret = h("div", { class: "secret", hidden: true, role: "status" });
  const tokens = panel("API tokens", { note: "A program logs in with a token instead of a password, with the rights of its user.", actions: [button("New token", create, { kind: "small" })] });
  tokens.body.before(secret);

  const load = () => tokens.load(async () => tokensTable(await api.rows("show tokens", { signal })));

  function tokensTable(rows) {
    if (!rows.length) return h("p", { class: "muted" }, "There is no token.");
    const revoker = (row) => button("Revoke", () => drop(row.Token, row.User), { kind: "danger small", label: `Revoke token ${row.Token} of ${row.User}`, "data-key": `token ${row.User} ${row.Token}` });
    return table(["Token", "User", "Created", "Expires", "Last used", ""],
      rows.map((row) => [h("strong", {}, row.Token), row.User, moment(row.Created), moment(row.Expires) || "never", row.LastUsed ?? "never", h("div", { class: "actions-cell" }, revoker(row))]), { caption: "API tokens" });
  }

  async function create() {
    const found = await ask("New token", "Create token", [{ name: "name", label: "Name" }, { name: "user", label: "User", value: api.session.user }, { name: "expires", label: "Expires on (a date), or never if empty", type: "date", optional: true }]);
    if (!found) return;
    const whose = found.user === api.session.user ? "" : ` for user ${nodeName(found.user)}`;
    const until = found.expires ? ` expires ${quoted(found.expires)}` : "";
    const rows = await run(api, `create token ${nodeName(found.name)}${whose}${until}`);
    if (!rows) return;
    const text = rows[0].Secret;
    secret.hidden = false;
    fill(secret, h("p", {}, `The token ${found.name}. It is shown only this once: copy it now.`), h("code", {}, text),
      button("Copy", () => navigator.clipboard?.writeText(text).then(() => api.notify("Copied.")), { kind: "small" }), button("Dismiss", () => { fill(secret); secret.hidden = true; }, { kind: "small" }));
    await load();
  }

  async function drop(name, user) {
    if (!await confirmed(`Revoke token ${name}? Programs that use it are refused at once.`, "Revoke")) return;
    await run(api, `drop token ${nodeName(name)} of user ${nodeName(user)}`);
    await load();
  }

  load();
  return tokens.element;
}

// ------------------------------------------------------------------------------------------------ audit

function auditPanel(api) {
  const user = h("input", { type: "search", "aria-label": "User", placeholder: "User", onchange: () => stop.now() });
  const event = h("select", { "aria-label": "Kind", onchange: () => stop.now() }, h("option", { value: "" }, "all kinds"), EVENTS.map((name) => h("option", { value: name }, name)));
  const audit = panel("Audit trail", { note: "The newest lines of the node that serves this page.", actions: [user, event] });
  const stop = watch((signal) => audit.load(async () => {
    const query = new URLSearchParams({ user: user.value.trim(), event: event.value, limit: AUDIT_LINES });
    const { lines } = await api.json(`/audit?${query}`, { signal });
    if (!lines.length) return h("p", { class: "muted" }, "There is no such line.");
    return table(["Time", "Kind", "User", "From", "Statement", "Result"],
      lines.map((line) => [moment(line.time), line.event, line.user, line.host.replace(/^ipv[46]:/, ""), h("code", { class: "statement" }, line.statement), line.code ? h("span", { class: "badge bad" }, `refused: ${line.code}`) : h("span", { class: "badge good" }, "done")]), { caption: "Audit trail" });
  }), AUDIT_MS);
  return { element: audit.element, stop };
}

export const access = { id: "access", title: "Access", icon: "M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5zM12 14v3", show };
