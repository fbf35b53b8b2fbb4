// The page Storage: databases, partitions, files, times to live, merges, the disk.

import { fill, h, table } from "./dom.js";
import { bytes, count, counted, duration, figure, meter, moment, panel, watch } from "./panel.js";

const REFRESH_MS = 5000;
const ROWS_MAX = 200;

// Read figures in Prometheus' text format: values by name, labels left out.
export function figuresOf(text) {
  const found = {};
  for (const line of text.split("\n")) {
    const [, name, value] = line.match(/^([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)$/) ?? [];
    if (name) found[name] = Number(value);
  }
  return found;
}

const days = (ms) => (ms === "INF" || ms === null ? "for ever" : duration(Number(ms) / 1000));

function show(root, api) {
  let chosen = "";
  const figures = h("div", { class: "figures" });
  const databases = panel("Databases");
  const partitions = panel("Partitions");
  const filter = h("select", { "aria-label": "Database", onchange: () => { chosen = filter.value; stop.now(); } });
  const files = panel("Files", { actions: [filter] });
  const ttl = panel("Time to live", { note: "Older points are hidden, and removed when files are merged." });
  const merges = panel("Merges", { note: "Of the node that serves this page, since it started." });
  root.append(h("div", { class: "panels" }, figures, databases.element, h("div", { class: "halves" }, ttl.element, merges.element), partitions.element, files.element));

  async function refresh(signal) {
    const of = chosen ? ` of database ${chosen}` : "";
    let used = null;
    await partitions.load(async () => {
      used = await api.rows("show partitions", { signal });
      return partitionsTable(used.filter((row) => !chosen || row.Database === chosen));
    });
    await Promise.all([
      databases.load(async () => {
        const names = await api.rows("show databases", { signal });
        refreshFilter(names.map((row) => row.Database));
        return databasesTable(names, used);
      }),
      files.load(async () => filesTable(await api.rows(`show files${of}`, { signal }))),
      ttl.load(async () => table(["Path", "Kept"], (await api.rows("show all ttl", { signal })).map((row) => [h("code", {}, row.Device), days(row["TTL(ms)"])]), { caption: "Time to live" })),
      loadFigures(signal),
    ]);
  }

  async function loadFigures(signal) {
    let node;
    await merges.load(async () => {
      node = figuresOf(await (await api.request("/metrics", { signal })).text());
      return mergesTable(node);
    });
    if (signal.aborted) return;
    fill(figures, node ? summary(node) : null);
  }

  function refreshFilter(names) {
    const options = ["", ...names];
    if ([...filter.options].map((option) => option.value).join("\n") === options.join("\n")) return;
    fill(filter, options.map((name) => h("option", { value: name, selected: name === chosen }, name || "all databases")));
  }

  const stop = watch(refresh, REFRESH_MS);
  return stop;
}

function summary(node) {
  return [
    figure("Files", count(node.saros_files), { detail: bytes(node.saros_file_bytes) }),
    figure("Late files", count(node.saros_unsequence_files), { detail: bytes(node.saros_unsequence_file_bytes) }),
    figure("In memory", bytes(node.saros_memtable_bytes), { detail: `log ${bytes(node.saros_log_bytes)}` }),
    figure("Disk free", bytes(node.saros_disk_free_bytes), { kind: node.saros_disk_free_bytes < 1e9 ? "bad" : "" }),
    figure("Devices", count(node.saros_devices), { detail: counted(node.saros_databases ?? 0, "database") }),
  ];
}

function databasesTable(names, partitions) {
  if (!names.length) return h("p", { class: "muted" }, "There is no database yet. Databases are created with the first write.");
  const of = (name) => (partitions ?? []).filter((row) => row.Database === name);
  const sum = (rows, column) => rows.reduce((total, row) => total + Number(row[column] ?? 0), 0);
  const largest = Math.max(1, ...names.map((row) => sum(of(row.Database), "Bytes")));
  return table(["Database", { title: "Partitions", numeric: true }, { title: "Files", numeric: true }, { title: "On disk", numeric: true }, "", { title: "In memory", numeric: true }, { title: "Replicas", numeric: true }],
    names.map((row) => {
      const own = of(row.Database);
      const known = (value) => (partitions ? value : "");
      return [h("strong", {}, row.Database), known(count(own.length)), known(count(sum(own, "SeqFiles") + sum(own, "UnseqFiles"))), known(bytes(sum(own, "Bytes"))), partitions ? meter(sum(own, "Bytes") / largest, `Share of ${row.Database}`) : "", known(bytes(sum(own, "MemTableBytes"))), count(row.DataReplicationFactor)];
    }), { caption: "Databases" });
}

function limited(rows, shown, what) {
  if (!rows.length) return h("p", { class: "muted" }, `There is no ${what}.`);
  return [shown, rows.length > ROWS_MAX ? h("p", { class: "muted" }, `The first ${ROWS_MAX} of ${counted(rows.length, what)}; choose a database to see fewer.`) : null];
}

function partitionsTable(rows) {
  const shown = table(["Database", "From", "Until", { title: "Files", numeric: true }, { title: "Late files", numeric: true }, { title: "On disk", numeric: true }, { title: "In memory", numeric: true }, { title: "Deletions", numeric: true }, "Node"],
    rows.slice(0, ROWS_MAX).map((row) => row.Reason
      ? ["", h("span", { class: "badge bad" }, row.Reason), "", "", "", "", "", "", row.DataNodeId]
      : [row.Database, moment(row.StartTime), moment(row.EndTime), count(row.SeqFiles), count(row.UnseqFiles), bytes(row.Bytes), bytes(row.MemTableBytes), h("span", {}, count(row.Tombstones), " ", row.SetAside ? h("span", { class: "badge bad" }, `${row.SetAside} damaged`) : null), row.DataNodeId]),
    { caption: "Partitions" });
  return limited(rows, shown, "partition");
}

function filesTable(rows) {
  const kinds = { Sequence: "", Unsequence: "warn", Loading: "warn", SetAside: "bad", Unknown: "bad" };
  const shown = table(["File", "Status", "Database", "From", "Until", { title: "Devices", numeric: true }, { title: "Size", numeric: true }, "Node"],
    rows.slice(0, ROWS_MAX).map((row) => [h("code", {}, row.File ?? ""), h("span", { class: `badge ${kinds[row.Status] ?? ""}`, title: row.Reason }, row.Status), row.Database ?? "", moment(row.StartTime), moment(row.EndTime), count(row.Devices), bytes(row.Bytes), row.DataNodeId]),
    { caption: "Files" });
  return limited(rows, shown, "file");
}

function mergesTable(node) {
  const written = node.saros_compaction_written_bytes_total ?? 0;
  const flushed = node.saros_flushed_bytes_total ?? 0;
  const rows = [
    ["Merges completed", count(node.saros_compactions_total)],
    ["Merges failed, to be tried again", count(node.saros_compaction_failures_total)],
    ["Read by merges", bytes(node.saros_compaction_read_bytes_total)],
    ["Written by merges", bytes(written)],
    ["Flushed from memory", bytes(flushed)],
    ["Write amplification", flushed ? ((flushed + written) / flushed).toFixed(2) : ""],
    ["Most files in a partition", count(node.saros_partition_files_max)],
  ];
  return table(["Figure", { title: "Value", numeric: true }], rows, { caption: "Merges" });
}

export const storage = { id: "storage", title: "Storage", icon: "M4 6c0-1.700 3.600-3 8-3s8 1.300 8 3-3.600 3-8 3-8-1.300-8-3zM4 6v12c0 1.700 3.600 3 8 3s8-1.300 8-3V6M4 12c0 1.700 3.600 3 8 3s8-1.300 8-3", show };
