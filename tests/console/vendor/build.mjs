// Bundles the libraries of the console, one module for each file in `entries/`, into the folder given: the modules with
// their types, `vendor.lock` (what each was made of) and `LICENSES`. The same packages always give the same bytes.

import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { build, version } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.dirname(here);
const folder = path.resolve(process.argv[2]);
const lock = JSON.parse(await readFile(path.join(root, "package-lock.json"), "utf8")).packages;

/** The package of a bundled file: its folder below `node_modules`. */
function packageOf(file) {
  const parts = path.relative(root, path.resolve(root, file)).split(path.sep);
  const start = parts.lastIndexOf("node_modules");
  if (start < 0) return null;
  return parts.slice(0, start + (parts[start + 1].startsWith("@") ? 3 : 2)).join("/");
}

async function licenceOf(name) {
  const files = (await readdir(path.join(root, name))).filter((file) => /^(licen[cs]e|copying)/i.test(file)).sort();
  if (!files.length) throw new Error(`${name} has no text of its licence`);
  return (await Promise.all(files.map((file) => readFile(path.join(root, name, file), "utf8")))).join("\n").trim();
}

await mkdir(folder, { recursive: true });
for (const file of await readdir(folder)) {
  if (/\.(js|d\.ts)$/.test(file)) await rm(path.join(folder, file));
}

const bundles = {};
const used = new Set();
for (const entry of (await readdir(path.join(here, "entries"))).sort()) {
  if (entry.endsWith(".d.ts")) {
    await copyFile(path.join(here, "entries", entry), path.join(folder, entry));
    continue;
  }
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [path.join(here, "entries", entry)],
    bundle: true,
    format: "esm",
    minify: true,
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    banner: { js: "/* Bundled by `make vendor`; vendor.lock names the packages, LICENSES has their licences. */" },
    metafile: true,
    write: false,
    outdir: folder,
  });
  const bytes = outputFiles[0].contents;
  const inputs = Object.values(metafile.outputs)[0].inputs;
  const packages = new Set(Object.keys(inputs).map(packageOf).filter((name) => name !== null));
  packages.forEach((name) => used.add(name));
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const names = [...packages].map((name) => name.replace(/^.*node_modules\//, "")).sort();
  bundles[entry] = { sha256, bytes: bytes.length, packages: names };
  await writeFile(path.join(folder, entry), bytes);
}

const packages = {};
const licences = [];
for (const place of [...used].sort()) {
  const name = place.replace(/^.*node_modules\//, "");
  if (name in packages) throw new Error(`two versions of ${name} are bundled`);
  const { version, integrity, license } = lock[place];
  const archive = createHash("sha256");
  for (const file of (await filesOf(path.join(root, place))).sort()) {
    archive.update(`${path.relative(path.join(root, place), file)}\0`).update(await readFile(file)).update("\0");
  }
  packages[name] = { version, license, sha256: archive.digest("hex"), integrity };
  licences.push(`${name} ${version} (${license})\n\n${await licenceOf(place)}\n`);
}

async function filesOf(top) {
  const entries = await readdir(top, { recursive: true, withFileTypes: true });
  const nested = path.join(top, "node_modules") + path.sep;
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => !file.startsWith(nested));
}

const about = "What `make vendor` bundled. sha256 of a package: over its files; integrity: of its archive, as npm names it.";
await writeFile(path.join(folder, "vendor.lock"), `${JSON.stringify({ about, esbuild: version, bundles, packages }, null, 2)}\n`);
await writeFile(path.join(folder, "LICENSES"), licences.join(`\n${"-".repeat(80)}\n\n`));
