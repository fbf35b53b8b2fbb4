// The page Cluster: nodes, groups and their slots, a change in progress, queries that run, slow statements.

import { button, confirmed, fill, h, table } from "./dom.js";
import { bytes, count, counted, duration, figure, meter, moment, panel, watch } from "./panel.js";
import { quoted } from "./sql.js";

const REFRESH_MS = 2000;
const SVG = "http://www.w3.org/2000/svg";
const SERIES = 8;
const GOOD = new Set(["Running"]);
const WARN = new Set(["ReadOnly", "Joining", "Leaving", "Removing"]);

const statusBadge = (status) => h("span", { class: `badge ${GOOD.has(status) ? "good" : WARN.has(status) ? "warn" : "bad"}` }, status ?? "Unknown");
const address = (host, port) => (host ? `${host}:${port}` : "this process");

// Group the rows of SHOW REGIONS by region; the meta group comes first.
function groupsOf(regions) {
  const groups = new Map();
  for (const row of regions) {
    if (!groups.has(row.RegionId)) groups.set(row.RegionId, { id: row.RegionId, isMeta: row.Type === "ConfigRegion", replicas: [] });
    groups.get(row.RegionId).replicas.push(row);
  }
  return [...groups.values()].sort((one, two) => one.id - two.id).map((group) => {
    const known = (name) => group.replicas.map((row) => row[name]).filter((value) => value !== null && value !== "");
    const greatest = (name) => (known(name).length ? Math.max(...known(name)) : null);
    return { ...group, slots: greatest("SeriesSlotNum"), lag: greatest("Lag"), term: greatest("Term"), databases: known("Database").sort((one, two) => two.length - one.length)[0] ?? "", leader: group.replicas.find((row) => row.Role === "Leader") };
  });
}

function show(root, api) {
  const figures = h("div", { class: "figures" });
  const change = h("div", { hidden: true });
  const nodes = panel("Nodes");
  const ring = panel("Slots by group", { note: "A slot is a part of the data; each belongs to one group of nodes." });
  const groups = panel("Groups", { note: "A group of nodes replicates one log. Lag is the number of entries that a replica has not applied yet." });
  const queries = panel("Running queries");
  const slow = panel("Slow statements", { note: "Of the node that serves this page, without their values." });
  root.append(h("div", { class: "panels" }, figures, change, nodes.element, h("div", { class: "halves" }, ring.element, groups.element), queries.element, slow.element));
  const state = { nodes: null, groups: null, queries: null };

  async function refresh(signal) {
    await Promise.all([
      nodes.isRefused ? null : showChange(change, api, signal),
      loadGroups(signal).then(() => nodes.load(async () => nodesTable(state.nodes = await api.rows("show cluster details", { signal }), state.groups ?? []))),
      queries.load(async () => queriesTable(state.queries = await api.rows("show queries", { signal }), kill)),
      slow.load(async () => slowTable(await api.json("/statements/slow", { signal }))),
    ]);
    if (!signal.aborted) fill(figures, summary(state));
  }

  async function loadGroups(signal) {
    let found;
    await groups.load(async () => {
      found = state.groups = groupsOf(await api.rows("show regions", { signal }));
      return groupsTable(found);
    });
    await ring.load(async () => (found ? slotsRing(found.filter((group) => group.slots)) : h("p", { class: "muted" }, "Not shown without the groups.")));
  }

  async function kill(query) {
    if (!await confirmed(`End query ${query.QueryId}? Its client gets an error.`, "Kill query")) return;
    await api.guarded(async () => {
      for await (const _ of api.query(`kill query ${quoted(query.QueryId)}`));
      api.notify(`Query ${query.QueryId} was ended.`);
      stop.now();
    });
  }

  const stop = watch(refresh, REFRESH_MS);
  return stop;
}

function summary({ nodes, groups, queries }) {
  const running = nodes?.filter((node) => GOOD.has(node.Status)).length;
  const leaderless = groups?.filter((group) => !group.leader).length ?? 0;
  const lag = Math.max(0, ...(groups ?? []).map((group) => group.lag ?? 0));
  const memory = (queries ?? []).reduce((sum, query) => sum + Number(query.MemoryBytes ?? 0), 0);
  return [
    nodes ? figure("Nodes running", `${running} of ${nodes.length}`, { kind: running < nodes.length ? "warn" : "" }) : null,
    groups ? figure("Groups", count(groups.length), { kind: leaderless ? "bad" : "", detail: leaderless ? `${leaderless} without a leader` : "all have a leader" }) : null,
    groups ? figure("Greatest lag", count(lag), { detail: lag === 1 ? "entry" : "entries" }) : null,
    groups ? figure("Slots", count(groups.reduce((sum, group) => sum + Number(group.slots ?? 0), 0))) : null,
    queries ? figure("Queries running", count(queries.length), { detail: bytes(memory) }) : null,
  ];
}

function nodesTable(rows, groups) {
  const led = (node) => groups.filter((group) => group.leader?.DataNodeId === node).length;
  const held = (node) => groups.filter((group) => group.replicas.some((row) => row.DataNodeId === node)).length;
  return table(["Node", "Status", "For clients", "For nodes", "Rack", "Version", { title: "Leads", numeric: true }, { title: "Replicas", numeric: true }],
    rows.map((row) => [h("strong", {}, row.NodeID), statusBadge(row.Status), address(row.RpcAddress, row.RpcPort), address(row.InternalAddress, row.InternalPort), row.Rack ?? "", row.Version ?? "", count(led(row.NodeID)), count(held(row.NodeID))]),
    { caption: "Nodes" });
}

function groupsTable(groups) {
  const replica = (row) => h("span", { class: `badge ${row.Role === "Leader" ? "good" : row.Status === "Running" ? "" : "bad"}`, title: `${row.Role ?? "unknown"}, ${row.Status}, lag ${row.Lag ?? "unknown"}` },
    `node ${row.DataNodeId}${row.Role === "Leader" ? " leads" : ""}${row.Lag ? ` +${row.Lag}` : ""}`);
  return table(["Group", "Databases", { title: "Slots", numeric: true }, "Replicas", { title: "Lag", numeric: true }, { title: "Term", numeric: true }],
    groups.map((group) => [group.isMeta ? h("span", {}, `${group.id} `, h("span", { class: "badge" }, "meta")) : group.id, group.databases, count(group.slots), h("div", { class: "replicas" }, group.replicas.map(replica)), count(group.lag), count(group.term)]),
    { caption: "Groups" });
}

// A ring of arcs, one for each group, as long as its share of the slots.
function slotsRing(groups) {
  const total = groups.reduce((sum, group) => sum + group.slots, 0) || 1;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 120 120");
  svg.setAttribute("class", "slots-ring");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", groups.map((group) => `group ${group.id}: ${group.slots} slots`).join(", "));
  let start = 0;
  groups.forEach((group, at) => {
    const arc = document.createElementNS(SVG, "circle");
    const share = group.slots / total;
    for (const [name, value] of Object.entries({ cx: 60, cy: 60, r: 46, pathLength: 1, "stroke-dasharray": `${Math.max(share - (groups.length > 1 ? 0.006 : 0), 0.001)} 1`, "stroke-dashoffset": -start, transform: "rotate(-90 60 60)", class: `series-${(at % SERIES) + 1}` })) arc.setAttribute(name, value);
    svg.append(arc);
    start += share;
  });
  const row = (group, at) => h("li", {}, h("span", { class: `swatch series-${(at % SERIES) + 1}`, "aria-hidden": "true" }), h("span", {}, `Group ${group.id}`), h("strong", {}, count(group.slots)),
    h("span", { class: "muted" }, `${Math.round((100 * group.slots) / total)} %, ${group.leader ? `led by node ${group.leader.DataNodeId}` : "no leader"}`));
  return h("div", { class: "slots" }, svg, h("ul", {}, groups.map(row)));
}

async function showChange(element, api, signal) {
  let row;
  try {
    [row] = await api.rows("show cluster change", { signal });
  } catch {
    row = undefined; // the panel of nodes says why
  }
  element.hidden = !row;
  if (!row) return;
  const parts = [row.Joining ? `node ${row.Joining} joins` : "", row.Leaving ? `node ${row.Leaving} leaves` : ""].filter(Boolean);
  const rate = row.BytesPerSecond ? `, ${bytes(row.BytesPerSecond)}/s` : "";
  const step = (name, done, all) => h("div", { class: "step" }, h("span", {}, name), meter(all ? done / all : 1, name), h("span", { class: "muted" }, `${count(done)} of ${count(all)}`));
  fill(element, h("section", { class: "card panel", "aria-label": "Change in progress" },
    h("header", {}, h("h2", {}, `Change ${row.Change} in progress`), h("span", { class: "badge warn" }, row.Stage)),
    h("p", { class: "muted" }, `${parts.join(", ") || "slots move"}; ${counted(row.Slots, "slot")}, ${bytes(row.BytesArrived)} of ${bytes(row.Bytes)} fetched${rate}`),
    h("div", { class: "steps" }, step("Moves opened", row.Opened, row.Moves), step("Data arrived", row.Arrived, row.Moves), step("Old copies dropped", row.Dropped, row.Moves), step("Groups changed", row.Regrouped, row.Regroups))));
}

function queriesTable(rows, kill) {
  if (!rows.length) return h("p", { class: "muted" }, "No query is running.");
  const killer = (row) => (row.QueryId ? button("Kill", () => kill(row), { kind: "danger small", label: `Kill query ${row.QueryId}`, "data-key": row.QueryId }) : null);
  return table(["Query", "Node", "Started", { title: "Elapsed", numeric: true }, "Client", { title: "Memory", numeric: true }, "Statement", ""],
    rows.map((row) => [h("span", { class: "mono" }, row.QueryId ?? ""), row.DataNodeId, moment(row.Time), duration(Number(row.ElapsedTime ?? 0)), row.ClientIp ?? "this process", bytes(row.MemoryBytes), h("code", { class: "statement" }, row.Statement), h("div", { class: "actions-cell" }, killer(row))]),
    { caption: "Running queries" });
}

function slowTable({ statements, threshold_ms }) {
  if (!statements.length) return h("p", { class: "muted" }, `No statement has taken longer than ${duration(threshold_ms / 1000)} since the node started.`);
  return table(["Started", { title: "Took", numeric: true }, "User", "Statement"],
    statements.map((row) => [moment(row.time), duration(row.ms / 1000), row.user, h("code", { class: "statement" }, row.statement)]), { caption: "Slow statements" });
}

export const cluster = { id: "cluster", title: "Cluster", icon: "M12 4v6M12 10l-6 6M12 10l6 6M9.500 3h5v4h-5zM3 16h6v5H3zM15 16h6v5h-6z", show };
