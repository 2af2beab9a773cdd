// Builds JavaScript with esbuild:
//   node build.mjs page [FILE]    everything that a server sends to browsers, as one file of the Python package
//   node build.mjs reader FOLDER  what the npm package in this folder has besides its sources

import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = "src/lookout/public/page";
const READER = "readers/js/src";
const MODULE = { bundle: true, format: "esm" };
// As a script one global, elsewhere the exports of a CommonJS module.
const SCRIPT = {
  bundle: true,
  format: "iife",
  globalName: "lookoutReader",
  footer: { js: 'if (typeof module === "object" && module.exports) module.exports = lookoutReader;' },
};

const COMMONJS = { bundle: true, format: "cjs", external: ["react"] };

async function bundle(entry, options) {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    target: "es2022",
    charset: "utf8",
    write: false,
    ...options,
  });
  return outputFiles[0].text;
}

const singleFile = () => bundle(`${READER}/page.js`, MODULE);

async function buildPage(file = join(ROOT, PAGE, "built.json")) {
  const small = (path, options) => bundle(path, { minify: true, ...options });
  const alias = { "lookout-reader/page": `./${READER}/page.js` };
  const built = {
    "embed.js": await small(`${READER}/embed.js`, { bundle: true, format: "iife" }),
    // The one that finds out the language stays apart: it asks for the texts while the others are on their way.
    "language.js": await small(`${PAGE}/language.js`),
    "lookout-reader.js": await singleFile(),
    "page.css": await small(`${PAGE}/page.css`),
    "page.js": await small(`${PAGE}/page.js`, { ...MODULE, alias, external: ["./language.js"] }),
    "reload.js": await small(`${PAGE}/reload.js`),
  };
  writeFileSync(file, `${JSON.stringify(built, null, 1)}\n`);
}

async function buildReader(folder) {
  const path = (name) => join(folder, name);
  mkdirSync(path("commonjs"), { recursive: true });
  writeFileSync(path("commonjs/package.json"), '{ "type": "commonjs" }\n');
  for (const [name, options] of [
    ["index", SCRIPT],
    ["page", SCRIPT],
    ["react", COMMONJS],
    ["testing", COMMONJS],
  ]) {
    writeFileSync(path(`commonjs/${name}.js`), await bundle(`${READER}/${name}.js`, options));
    copyFileSync(join(ROOT, READER, `${name}.d.ts`), path(`commonjs/${name}.d.ts`));
  }
  writeFileSync(path("lookout-reader.js"), await singleFile());
  copyFileSync(join(ROOT, READER, "page.d.ts"), path("lookout-reader.d.ts"));
}

const [what, where] = process.argv.slice(2);
await { page: buildPage, reader: buildReader }[what](where);
