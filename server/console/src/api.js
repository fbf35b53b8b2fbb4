// Requests to the node. All carry the session's CSRF token; all can be cancelled by a signal, which also cancels the
// statement on the node.

export class ApiError extends Error {
  constructor(message, code, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

export const isAbort = (error) => error?.name === "AbortError";

export class Api {
  // `onLoggedOut`: called when the session has ended; `onError`: shows an error.
  constructor({ onLoggedOut, onError }) {
    this.session = { state: "login", csrf: "" };
    this.onLoggedOut = onLoggedOut;
    this.onError = onError;
  }

  // Send a request; return the response. `json`: the body. Throws ApiError, and AbortError.
  async request(path, { method = "GET", json, body, headers = {}, signal } = {}) {
    const sent = { "X-Saros-Csrf": this.session.csrf ?? "", ...headers };
    if (json !== undefined) sent["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, { method, headers: sent, body: json === undefined ? body : JSON.stringify(json), signal });
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new ApiError("the node cannot be reached: is it running?", 0, 0);
    }
    if (!response.ok) throw await this.#failure(response);
    return response;
  }

  async #failure(response) {
    let found = {};
    try {
      found = await response.json();
    } catch {
      // not an error of the node's
    }
    const error = new ApiError(found.message ?? `HTTP ${response.status}`, found.code, response.status);
    if (response.status === 401 && this.session.state === "in") this.onLoggedOut();
    return error;
  }

  async json(path, options) {
    return (await this.request(path, options)).json();
  }

  // Yield the lines of a response of JSON lines, parsed, as they arrive.
  async *lines(path, options) {
    const response = await this.request(path, options);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n");
        rest = parts.pop();
        for (const part of parts) if (part) yield JSON.parse(part);
      }
    } finally {
      reader.cancel().catch(() => undefined);
    }
  }

  // Execute a statement. Yields the head {query_id, columns: [{name, type}], count}, then {rows, values: [column]}.
  // Throws ApiError, also if the result ends early.
  async *query(sql, { parameters = [], timeout_ms = 0, signal } = {}) {
    let ended = false;
    for await (const line of this.lines("/console/query", { method: "POST", json: { sql, parameters, timeout_ms }, signal })) {
      if (line.error) throw new ApiError(line.error.message, line.error.code, 200);
      if (line.end) ended = true;
      else yield line;
    }
    if (!ended) throw new ApiError("the connection was lost before the end of the result: run it again", 0, 0);
  }

  // Return all rows of a small result as objects by column name.
  async rows(sql, options) {
    const rows = [];
    let names = [];
    for await (const part of this.query(sql, options)) {
      if (part.columns) names = part.columns.map((column) => column.name);
      else for (let at = 0; at < part.rows; at += 1) rows.push(Object.fromEntries(names.map((name, n) => [name, part.values[n][at]])));
    }
    return rows;
  }

  // Run an async function; show its error, unless it was cancelled.
  async guarded(run) {
    try {
      return await run();
    } catch (error) {
      if (!isAbort(error)) this.onError(error);
      return undefined;
    }
  }
}
