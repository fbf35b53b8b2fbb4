// The page Import: a CSV, JSON lines or Parquet file is sent in pieces, shown as it would be written, and written.

import { isAbort } from "./api.js";
import { button, confirmed, fill, h, table } from "./dom.js";
import { bytes, count, counted, meter, refill, sentence } from "./panel.js";

const PIECE_BYTES = 4 << 20;
const TYPE_MS = 400;
const TYPES = ["BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "TEXT", "STRING", "BLOB", "DATE", "TIMESTAMP"];
const FORMATS = [["", "found by the content"], ["csv", "CSV"], ["json", "JSON lines"], ["parquet", "Parquet"]];
const DELIMITERS = [["", "found in the header"], [",", "comma"], [";", "semicolon"], ["\t", "tab"], ["|", "bar"]];

// A name that nobody can guess.
function randomJob() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function show(root, api) {
  const container = h("div", { class: "panels imports" });
  root.append(container);
  let current = null;

  function choose() {
    current?.dispose();
    current = null;
    const input = h("input", { type: "file", accept: ".csv,.txt,.tsv,.json,.jsonl,.ndjson,.parquet,.pq,.gz,.zst,.bz2,.lz4", class: "for-readers", id: "import-file", onchange: () => input.files[0] && open(input.files[0]) });
    const zone = h("label", { class: "drop", for: "import-file" }, input, h("strong", {}, "Drop a CSV, JSON lines or Parquet file here"), h("span", { class: "muted" }, "or press to choose one. It is shown before anything is written."));
    zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    });
    fill(container, h("section", { class: "card panel", "aria-label": "File" }, h("header", {}, h("h2", {}, "Import a file")), zone));
  }

  function open(file) {
    current?.dispose();
    current = new Import(api, file, container, choose);
    current.start();
  }

  choose();
  return () => current?.dispose();
}

class Import {
  constructor(api, file, container, onEnd) {
    this.api = api;
    this.file = file;
    this.container = container;
    this.onEnd = onEnd;
    this.job = randomJob();
    this.names = {};
    this.types = {};
    this.left = new Set();
    this.end = new AbortController();
    this.isSent = false;
    this.isDone = false;
  }

  dispose() {
    this.end.abort();
    if (this.isSent && !this.isDone) this.api.request("/import/discard", { method: "POST", json: { job: this.job } }).catch(() => undefined);
  }

  // ---------------------------------------------------------------------------------------------- sending

  async start() {
    const bar = h("div", {});
    const stop = button("Cancel", () => { this.dispose(); this.onEnd(); });
    fill(this.container, h("section", { class: "card panel", "aria-label": "File" }, h("header", {}, h("h2", {}, `Sending ${this.file.name}`), stop), bar));
    try {
      for (let offset = 0; offset < Math.max(this.file.size, 1); offset += PIECE_BYTES) {
        fill(bar, meter(offset / this.file.size, "Sent"), h("p", { class: "muted" }, `${bytes(offset)} of ${bytes(this.file.size)}`));
        this.isSent = true;
        await this.api.json(`/import/chunk?job=${this.job}&offset=${offset}`, { method: "POST", body: await this.file.slice(offset, offset + PIECE_BYTES).arrayBuffer(), signal: this.end.signal });
      }
    } catch (error) {
      if (!isAbort(error)) fill(bar, h("p", { class: "failure", role: "alert" }, sentence(error)), button("Choose another file", this.onEnd));
      return;
    }
    this.build();
    await this.preview();
  }

  // ---------------------------------------------------------------------------------------------- options

  build() {
    const changed = () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.preview(), TYPE_MS); };
    const field = (name, label, attributes = {}) => h("label", {}, label, h("input", { name, type: "text", autocomplete: "off", spellcheck: "false", ...attributes }));
    const choice = (name, label, options) => h("label", {}, label, h("select", { name }, options.map(([value, text]) => h("option", { value }, text))));
    this.headers = h("datalist", { id: "import-headers" });
    this.form = h("form", { onsubmit: (event) => event.preventDefault(), oninput: changed }, this.headers,
      h("div", { class: "form-row" },
        field("device", "Device ({file}: the file's name, {device}: a column)", { value: "root.imported.{file}" }),
        choice("format", "Format", FORMATS),
        field("time_column", "Time column", { placeholder: "found by itself", list: "import-headers" }),
        field("time_format", "Time format", { placeholder: "ISO 8601, or %d.%m.%Y %H:%M:%S" }),
        field("zone", "Zone of times without one", { placeholder: "UTC" })),
      h("details", {}, h("summary", {}, "More options"), h("div", { class: "form-row" },
        field("device_column", "Device column", { list: "import-headers" }),
        choice("delimiter", "Delimiter", DELIMITERS),
        field("decimal", "Decimal mark", { placeholder: ".", maxlength: 1 }),
        field("thousands", "Thousands separator", { maxlength: 1 }),
        field("encoding", "Encoding", { placeholder: "utf-8" }),
        field("skip_lines", "Lines before the header", { placeholder: "0", inputmode: "numeric" }),
        field("nulls", "Texts that mean no value, with commas between"),
        choice("aligned", "New devices", [["", "not aligned"], ["yes", "aligned"]]))));
    this.shown = h("div", { class: "import-preview" });
    this.runButton = button("Import", () => this.run(), { kind: "primary" });
    this.runButton.disabled = true;
    this.status = h("div", { class: "import-status", role: "status" });
    this.options = h("section", { class: "card panel", "aria-label": "Options" },
      h("header", {}, h("h2", {}, this.file.name, " ", h("span", { class: "badge" }, bytes(this.file.size))), h("div", { class: "panel-actions" }, button("Choose another file", this.onEnd), this.runButton)),
      h("p", { class: "muted" }, "The options are those of saros import."), this.form);
    fill(this.container, this.options, this.status, this.shown);
  }

  // The body of preview and run.
  about() {
    const value = (name) => this.form.elements[name].value.trim();
    const found = { job: this.job, size: this.file.size, name: this.file.name, names: this.names, types: this.types };
    for (const name of ["device", "format", "time_format", "zone", "device_column", "decimal", "thousands", "encoding"]) found[name] = value(name);
    found.delimiter = this.form.elements.delimiter.value; // a tab is one
    found.aligned = value("aligned") === "yes";
    found.skip_lines = Number.parseInt(value("skip_lines"), 10) || 0;
    if (value("time_column")) found.time_columns = [value("time_column")];
    if (value("nulls")) found.nulls = value("nulls").split(",").map((text) => text.trim());
    if (this.left.size) found.columns = this.all.filter((header) => !this.left.has(header));
    return found;
  }

  async preview() {
    this.asked?.abort();
    this.asked = new AbortController();
    const signal = AbortSignal.any([this.asked.signal, this.end.signal]);
    try {
      const found = await this.api.json("/import/preview", { method: "POST", json: this.about(), signal });
      this.showPreview(found);
      this.runButton.disabled = false;
    } catch (error) {
      if (isAbort(error)) return;
      this.runButton.disabled = true;
      refill(this.shown, h("section", { class: "card panel", "aria-label": "Preview" }, h("h2", {}, "The file cannot be read like this"), h("p", { class: "failure", role: "alert" }, sentence(error)),
        this.left.size || Object.keys(this.types).length || Object.keys(this.names).length ? button("Forget the choices for columns", () => this.forget()) : null));
    }
  }

  forget() {
    this.left.clear();
    this.names = {};
    this.types = {};
    this.preview();
  }

  showPreview(found) {
    const apart = new Set([...(found.time ?? []), this.form.elements.device_column.value]);
    this.all = (found.headers ?? []).filter((header) => !apart.has(header));
    fill(this.headers, (found.headers ?? []).map((header) => h("option", { value: header })));
    const columns = new Map(found.columns.map((column) => [column.header, column]));
    refill(this.shown,
      found.notes.map((note) => h("p", { class: "note" }, note)),
      h("section", { class: "card panel", "aria-label": "Columns" }, h("header", {}, h("h2", {}, "Columns"), h("span", { class: "muted" }, `times: ${found.time.join(", ") || "none found"}`)),
        table(["Import", "Column", "Name of the series", "Type", "Series"], this.all.map((header) => this.mappingRow(header, columns.get(header))), { caption: "Columns" })),
      h("section", { class: "card panel", "aria-label": "Preview" }, h("header", {}, h("h2", {}, "Preview"), h("span", { class: "muted" }, "the first rows, times in UTC")),
        table(["Time", ...(found.devices.length ? ["Device"] : []), ...found.columns.map((column) => ({ title: this.names[column.header] ?? column.header, numeric: !["TEXT", "STRING", "BLOB"].includes(column.type) }))],
          found.rows.map((row, at) => [row[0], ...(found.devices.length ? [found.devices[at]] : []), ...row.slice(1).map((value) => (value === null ? h("span", { class: "muted" }, "null") : String(value)))]), { caption: "Preview" }),
        found.bad.length ? badRows(found.bad, "Rows that would be left out") : null));
  }

  mappingRow(header, column) {
    const included = h("input", { type: "checkbox", checked: !this.left.has(header), "aria-label": `Import ${header}`, "data-key": `in ${header}`, onchange: () => {
      if (included.checked) this.left.delete(header);
      else this.left.add(header);
      this.preview();
    } });
    const name = h("input", { type: "text", value: this.names[header] ?? header, "aria-label": `Name for ${header}`, "data-key": `name ${header}`, disabled: this.left.has(header), onchange: () => {
      if (name.value.trim() && name.value !== header) this.names[header] = name.value.trim();
      else delete this.names[header];
      this.preview();
    } });
    const type = h("select", { "aria-label": `Type of ${header}`, "data-key": `type ${header}`, disabled: this.left.has(header), onchange: () => {
      if (type.value) this.types[header] = type.value;
      else delete this.types[header];
      this.preview();
    } }, h("option", { value: "" }, column && !this.types[header] ? `${column.type} (found)` : "found by itself"), TYPES.map((word) => h("option", { value: word, selected: this.types[header] === word }, word)));
    return [included, header, name, type, column ? h("code", {}, column.series) : h("span", { class: "muted" }, this.left.has(header) ? "left out" : "no values in the first rows")];
  }

  // ---------------------------------------------------------------------------------------------- writing

  async run() {
    const stop = new AbortController();
    const bad = [];
    let last = { rows: 0, points: 0, bytes: 0, bad_rows: 0 };
    const cancel = button("Cancel import", async () => {
      if (await confirmed("Cancel the import? The rows that are written stay.", "Cancel import")) stop.abort();
    }, { kind: "danger" });
    const progress = h("div", {});
    const list = h("div", {});
    this.runButton.disabled = true;
    this.form.inert = true;
    this.shown.hidden = true;
    const title = h("h2", {}, "Importing");
    fill(this.status, h("section", { class: "card panel", "aria-label": "Progress" }, h("header", {}, title, cancel), progress, list));
    const draw = () => {
      fill(progress, meter(last.done ? 1 : last.bytes / (this.file.size || 1), "Imported"), h("p", {}, `${counted(last.rows, "row")}, ${counted(last.points, "point")}`, last.bad_rows ? `, ${counted(last.bad_rows, "row")} left out` : ""));
      fill(list, bad.length ? badRows(bad, `Rows that were left out${last.bad_rows > bad.length ? `: the first ${bad.length} of ${count(last.bad_rows)}` : ""}`) : null);
    };
    let failure = "";
    try {
      draw();
      for await (const line of this.api.lines("/import/run", { method: "POST", json: this.about(), signal: AbortSignal.any([stop.signal, this.end.signal]) })) {
        last = line;
        bad.push(...line.bad);
        draw();
        if (line.error) failure = line.error.message;
      }
      if (!last.done && !failure) failure = "the connection was lost; the rows that are written stay";
    } catch (error) {
      if (this.end.signal.aborted) return;
      failure = isAbort(error) ? "It was cancelled; the rows that are written stay." : sentence(error);
      this.isDone = isAbort(error); // the node has removed the file
    }
    this.finish(title, cancel, progress, last, failure);
  }

  finish(title, cancel, progress, last, failure) {
    cancel.remove();
    if (failure) {
      fill(title, "The import ended early");
      progress.append(h("p", { class: "failure", role: "alert" }, failure), button(this.isDone ? "Import a file" : "Change the options", () => (this.isDone ? this.onEnd() : this.again())));
      return;
    }
    this.isDone = true;
    this.options.hidden = true;
    fill(title, `Imported ${this.file.name}`);
    const types = Object.entries(last.types).map(([name, type]) => `${name} ${type}`).join(", ");
    progress.append(h("p", { class: "muted" }, types), ...last.notes.map((note) => h("p", { class: "note" }, note)), button("Import another file", this.onEnd, { kind: "primary" }));
  }

  again() {
    fill(this.status);
    this.form.inert = false;
    this.shown.hidden = false;
    this.preview();
  }
}

function badRows(rows, title) {
  return h("div", { class: "bad-rows" }, h("h3", {}, title), table([{ title: rows[0].line === undefined ? "Row" : "Line", numeric: true }, "Reason"], rows.map((row) => [row.line ?? row.row, row.reason]), { caption: title }));
}

export const imports = { id: "import", title: "Import", icon: "M12 3v12M7 10l5 5 5-5M4 17v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3", show };
