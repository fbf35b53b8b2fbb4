// Completions of the editor: keywords, the node's functions, and paths of the schema, level by level as they are needed.

import { KEYWORDS } from "./keywords.js";
import { lastNode, nodeName } from "./sql.js";

const NODE = "(?:[\\w\\u4e00-\\u9fff]+|`(?:[^`]|``)*`)";
const PATH = new RegExp(`root(?:\\.${NODE})*\\.(?:[\\w\\u4e00-\\u9fff]*|\`[^\`]*)$`, "i");
const FROM = new RegExp(`\\bfrom\\s+(root(?:\\.${NODE})*)`, "i");

export function completions(api) {
  const children = new Map();
  let functions = null;

  const childrenOf = (path) => {
    if (!children.has(path)) {
      const found = api.rows(`show child paths ${path}`).catch(() => []);
      children.set(path, found);
      setTimeout(() => children.delete(path), 30_000); // the schema changes
    }
    return children.get(path);
  };
  const functionNames = () => {
    functions ??= api.rows("show functions").catch(() => []);
    return functions;
  };
  const asOptions = (rows) => rows.map((row) => ({ label: nodeName(lastNode(row.ChildPaths)), detail: row.NodeTypes.toLowerCase(), boost: 2 }));

  return async (context) => {
    const path = context.matchBefore(PATH);
    if (path) {
      const dot = path.text.lastIndexOf(".");
      const rows = await childrenOf(path.text.slice(0, dot));
      return { from: path.from + dot + 1, options: [...asOptions(rows), { label: "*", detail: "one level" }, { label: "**", detail: "all below" }], validFor: /^[\w`*]*$/ };
    }
    const word = context.matchBefore(/[A-Za-z_]\w*/);
    if (!word && !context.explicit) return null;
    const from = FROM.exec(context.state.doc.toString());
    const [named, measured] = await Promise.all([functionNames(), from ? childrenOf(from[1]) : []]);
    const typed = word?.text ?? "";
    const cased = (name) => (typed === typed.toUpperCase() && typed ? name : name.toLowerCase());
    return {
      from: word ? word.from : context.pos,
      validFor: /^\w*$/,
      options: [
        ...asOptions(measured),
        { label: "root", detail: "path" },
        ...KEYWORDS.map((name) => ({ label: cased(name) })),
        ...named.map((row) => ({ label: row.FunctionName.toLowerCase(), detail: row.FunctionType.replace("built-in ", ""), apply: `${row.FunctionName.toLowerCase()}(` })),
      ],
    };
  };
}
