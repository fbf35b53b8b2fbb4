// Bundles the console: src/ and the packages of package-lock.json -> ../saros_server/console/static/ (or the folder
// given as an argument). The same sources make the same bytes. The bundle begins with the hash of its sources.

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../saros_server/console/static");

function sha256(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

// Names and contents of all sources, in the order of their names; tests compute the same.
function sourcesHash() {
  const names = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  names.push(...["build.mjs", "package.json", "package-lock.json"].map((name) => join(here, name)));
  const relative = new Map(names.map((name) => [name.slice(here.length + 1), name]));
  return sha256(...[...relative.keys()].sort().flatMap((name) => [`${name}\0`, readFileSync(relative.get(name)), "\0"]));
}

// The licences of the bundled packages: those that the bundle has a module of.
function licences(inputs) {
  const packages = new Set(inputs.flatMap((name) => name.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []));
  const texts = [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((found) => /^licen[cs]e/i.test(found));
    return `${name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return `The console contains these packages of npm.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

const result = await build({
  absWorkingDir: here,
  entryPoints: [join(here, "src/console.js"), join(here, "src/console.css")],
  outdir: out,
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "esm",
  target: ["es2022"],
  legalComments: "none",
  charset: "utf8",
});
mkdirSync(out, { recursive: true });
let page = readFileSync(join(here, "src/index.html"), "utf8");
for (const file of result.outputFiles) {
  const name = file.path.slice(out.length + 1);
  const text = `/* sources: ${sourcesHash()}; licences: THIRD_PARTY.txt */\n${file.text}`;
  writeFileSync(join(out, name), text);
  page = page.replace(`"${name}"`, `"${name}?v=${sha256(text).slice(0, 16)}"`);
}
writeFileSync(join(out, "index.html"), page);
copyFileSync(join(here, "src/icon.svg"), join(out, "icon.svg"));
writeFileSync(join(out, "THIRD_PARTY.txt"), licences(Object.keys(result.metafile.inputs)));
