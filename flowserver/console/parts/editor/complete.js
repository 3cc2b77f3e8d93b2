/** What can be written at a place of a definition: step types, attributes, names of steps, resources, expressions. */
import { contextAt } from "./cursor-context.js";

/**
 * @typedef {{name: string, shapes: string[], description: string, required: boolean, default: string,
 *   holds: string | null, values: string[]}} Attribute
 * @typedef {{name: string, title: string, isStep: boolean, attributes: Attribute[]}} Kind
 * @typedef {{kinds: Kind[], contextPaths: string[]}} Language  the reply of v1/definitions/language
 * @typedef {{functions: string[], flows: string[], queues: string[], topics: string[]}} Resources  names on the server
 * @typedef {{label: string, detail?: string, info?: string, type: string, apply?: string, boost?: number}} Option
 * @typedef {{from: number, options: Option[]}} Completions
 * @typedef {import("./cursor-context.js").CursorContext} CursorContext
 * @typedef {import("./cursor-context.js").Level} Level
 */

const COMMENT = /(?:^|\s)#/;
const SELECTING = new Set(["condition", "collection", "duration", "timestamp", "serviceParams"]);
const MAPPING_LISTS = new Set(["inputMappings", "outputMappings", "errorMappings"]);

/**
 * @param {string} text the definition @param {number} offset of the cursor
 * @param {Language} language @param {Resources} resources
 * @returns {Completions | null} null where nothing is known
 */
export function completionsAt(text, offset, language, resources) {
  if (COMMENT.test(text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset))) return null;
  if (text.trimStart().startsWith("{")) return null; // a definition in JSON
  const context = contextAt(text, offset);
  const kinds = kindsOf(context.levels, language);
  const kind = kinds[kinds.length - 1];
  if (context.levels.some((level, index) => index > 0 && !kinds[index] && !isStep(kinds, level))) return null;
  const options = context.key === null ? names(context, kind, kinds, language) : values(text, context, kind, language, resources);
  return options.length ? { from: context.from, options } : null;
}

/**
 * The kind of each object around the cursor; null for one that is not known (yet).
 * @param {Level[]} levels @param {Language} language @returns {(Kind | null)[]}
 */
function kindsOf(levels, language) {
  const named = (/** @type {string} */ name) => language.kinds.find((kind) => kind.name === name) ?? null;
  /** @type {(Kind | null)[]} */
  const kinds = [];
  for (const [index, level] of levels.entries()) {
    if (index === 0) kinds.push(named("flow"));
    else {
      const holds = kinds[index - 1]?.attributes.find((attribute) => attribute.name === level.key)?.holds ?? "";
      const type = level.fields.get("type") ?? "";
      kinds.push(holds === "step" ? (language.kinds.find((kind) => kind.isStep && kind.name === type) ?? null) : named(holds));
    }
  }
  return kinds;
}

/** @param {(Kind | null)[]} kinds @param {Level} level */
const isStep = (kinds, level) => level.key === "steps" && kinds[0] !== null;

/** @param {CursorContext} context @param {Kind | null} kind @param {(Kind | null)[]} kinds @param {Language} language @returns {Option[]} */
function names(context, kind, kinds, language) {
  const level = context.levels[context.levels.length - 1];
  const holder = kinds[kinds.length - 2]?.attributes.find((attribute) => attribute.name === level.key);
  if (holder?.shapes.includes("a list") && !level.isEntry) return entryOf(holder, language);
  if (!kind) {
    return context.levels.length > 1 && !level.fields.has("type")
      ? [{ label: "type", detail: "required", info: "The kind of step.", type: "property", apply: "type: ", boost: 9 }, ...steps(language)]
      : [];
  }
  return kind.attributes
    .filter((attribute) => !level.fields.has(attribute.name))
    .map((attribute) => ({
      label: attribute.name,
      detail: attribute.required ? "required" : attribute.shapes.join(" or ").replace(/\ban? /g, ""),
      info: attribute.description + (attribute.required || attribute.default === "none" ? "" : ` Default: ${attribute.default}.`),
      type: "property",
      apply: attribute.name + (context.inBraces || !attribute.holds ? ": " : ":"),
      boost: attribute.required ? 5 : 0,
    }));
}

/**
 * The beginning of an entry, where the dash is still missing.
 * @param {Attribute} holder @param {Language} language @returns {Option[]}
 */
function entryOf(holder, language) {
  if (holder.holds === "step") return steps(language).map((step) => ({ ...step, apply: `- ${step.apply}` }));
  const first = language.kinds.find((kind) => kind.name === holder.holds)?.attributes[0].name;
  return first ? [{ label: `- ${first}`, type: "property", info: holder.description, apply: `- ${first}: ` }] : [];
}

/** @param {Language} language @returns {Option[]} */
function steps(language) {
  return language.kinds
    .filter((kind) => kind.isStep)
    .map(({ name, title }) => ({ label: `type: ${name}`, detail: title, type: "class", apply: `type: ${name}` }));
}

/** @param {string} text @param {CursorContext} context @param {Kind | null} kind @param {Language} language @param {Resources} resources */
function values(text, context, kind, language, resources) {
  const key = context.key ?? "";
  const level = context.levels[context.levels.length - 1];
  if (key === "type" && level.key === "steps") {
    return language.kinds.filter((each) => each.isStep).map(({ name, title }) => ({ label: name, detail: title, type: "class" }));
  }
  if (key === "goto") return goto(context.levels);
  if (key === "resourceArn") return arns(resources);
  if (key === "source" || SELECTING.has(key) || (kind === null && context.typed.startsWith("$"))) return expressions(text, context, language);
  const attribute = kind?.attributes.find((each) => each.name === key);
  return (attribute?.values ?? []).map((label) => ({ label, type: "constant" }));
}

/**
 * The other steps of the list that the step around the cursor is in.
 * @param {Level[]} levels @returns {Option[]}
 */
function goto(levels) {
  const step = levels.findLast((level) => level.key === "steps");
  const own = step?.fields.get("name");
  return [...new Set(step?.names ?? [])].filter((name) => name !== own).map((label) => ({ label, detail: "step", type: "variable" }));
}

/** @param {Resources} resources @returns {Option[]} */
function arns({ functions, flows, queues, topics }) {
  const made = (/** @type {string} */ detail, /** @type {(name: string) => string} */ arn) => (/** @type {string} */ name) => ({
    label: arn(name),
    detail,
    type: "function",
  });
  return [
    ...functions.map(made("function", arnOfFunction)),
    ...flows.map(made("flow", (name) => `acs:fnf:::flow/${name}`)),
    ...queues.map(made("queue", (name) => `acs:mns:::/queues/${name}/messages`)),
    ...topics.map(made("topic", (name) => `acs:mns:::/topics/${name}/messages`)),
  ];
}

/** @param {string} name `service/function`, or `-/function` without a service */
function arnOfFunction(name) {
  const [service, own] = name.split("/", 2);
  return service === "-" ? `acs:fc:::functions/${own}` : `acs:fc:::services/${service}/functions/${own}`;
}

/**
 * Expression roots, what `$context` has, and the targets that the definition's mappings set.
 * @param {string} text @param {CursorContext} context @param {Language} language @returns {Option[]}
 */
function expressions(text, context, language) {
  const targets = new Set([...text.matchAll(/\btarget:\s*["']?([A-Za-z_][\w-]*)/g)].map((found) => found[1]));
  if (context.key !== "source") {
    return ["$", ...[...targets].map((name) => `$.${name}`)].map((label) => ({ label, detail: "of the step's input", type: "variable" }));
  }
  const holder = context.levels.findLast((level) => MAPPING_LISTS.has(level.key));
  const local = holder?.key === "outputMappings" ? "the step's result" : holder?.key === "errorMappings" ? "error and cause" : "outputs of earlier steps";
  const roots = [
    { label: "$input", detail: "the input", type: "variable", boost: 3 },
    { label: "$local", detail: local, type: "variable", boost: 2 },
    ...(holder?.key === "errorMappings" ? ["$local.error", "$local.cause"] : []).map((label) => ({ label, type: "variable", boost: 2 })),
    ...language.contextPaths.map((label) => ({ label, detail: "the run", type: "variable" })),
  ];
  const dotted = /^\$(?:input|local)\./.exec(context.typed)?.[0];
  return dotted ? [...targets].map((name) => ({ label: dotted + name, detail: "a target in this definition", type: "variable" })) : roots;
}
