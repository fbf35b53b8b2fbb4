// Texts of SQL.

const PLAIN = /^[A-Za-z_\u4e00-\u9fff][A-Za-z0-9_\u4e00-\u9fff]*$/;
const KEYWORDS = new Set(["root", "time", "timestamp"]);

// Quote a text.
export const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

// Return the node of a path as it is written in a statement; SHOW statements already return nodes in quotes.
export function nodeName(name) {
  if (name.startsWith("`") || (PLAIN.test(name) && !KEYWORDS.has(name.toLowerCase()))) return name;
  return `\`${name.replaceAll("`", "``")}\``;
}

// Return a node as it is written where no dot stands before it: `time` and `null` are words there.
export const quotedNode = (node) => (node.startsWith("`") ? node : `\`${node}\``);

// Split a path at its dots outside of quotes.
export function pathNodes(path) {
  return path.match(/`(?:[^`]|``)*`|[^.`]+/g) ?? [];
}

// Return the last node of a path.
export const lastNode = (path) => pathNodes(path).at(-1) ?? path;

// Return a path without its last node.
export const parentPath = (path) => pathNodes(path).slice(0, -1).join(".");
