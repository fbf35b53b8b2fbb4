// The tree of EXPLAIN ANALYZE, with a bar for the time of each operator.

import { h } from "./dom.js";

// Return the list of lines as a tree by their indentation: [{text, time, children}].
export function planTree(lines) {
  const root = { children: [], depth: -1 };
  const open = [root];
  for (const line of lines) {
    const depth = line.search(/\S/);
    if (depth < 0) continue;
    while (open.at(-1).depth >= depth) open.pop();
    const time = line.match(/\btime ([\d.]+) ms/)?.[1];
    const node = { text: line.trim(), time: time === undefined ? null : Number(time), children: [], depth };
    open.at(-1).children.push(node);
    open.push(node);
  }
  return root.children;
}

export function plan(lines) {
  const tree = planTree(lines);
  const times = (nodes) => nodes.flatMap((node) => [node.time ?? 0, ...times(node.children)]);
  const longest = Math.max(...times(tree), 0.001);
  const item = (node) => {
    const [name, ...facts] = node.text.split(/ {2,}/);
    const share = node.time === null ? 0 : (node.time / longest) * 100;
    return h("li", {}, h("div", { class: facts.length ? "operator" : "operator heading" },
      h("span", { class: "operator-name" }, name),
      node.time === null ? null : h("span", { class: "operator-time" }, h("span", { class: "time-bar", style: { width: `${Math.max(share, 0.5)}%` } })),
      node.time === null ? null : h("span", { class: "operator-ms" }, `${node.time} ms`),
      h("span", { class: "operator-facts" }, facts.filter((fact) => !fact.startsWith("time ")).join(" · "))),
    node.children.length ? h("ul", {}, node.children.map(item)) : null);
  };
  return h("div", { class: "plan", tabindex: 0, role: "region", "aria-label": "Plan" }, h("ul", {}, tree.map(item)));
}
