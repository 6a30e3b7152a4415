// What the bridge needs of jiti: TypeScript, of which the stand-ins hold a few marked types, and `./x.js` for `x.ts`.

const { existsSync, readFileSync } = require("node:fs");
const { isBuiltin } = require("node:module");
const { dirname, join } = require("node:path");

const PLAIN = [
  [/^import type .*$/gm, ""],
  [/\??: (?:Api|Call|Config|Entry|Message)(?:\[\])?(?=[,);= ])/g, ""],
  [/^import (\{.*\}) from (".*");$/gm, "const $1 = load($2);"],
  [/^export default /gm, "exports.default = "],
  [/^export function (\w+)/gm, "exports.$1 = $1;\nfunction $1"],
];

exports.createJiti = (_from, { alias = {} } = {}) => {
  const made = {};
  const loaded = (path) => {
    if (made[path]) return made[path];
    const code = PLAIN.reduce((text, [what, by]) => text.replace(what, by), readFileSync(path, "utf8"));
    const load = (name) => {
      if (name in alias) return require(alias[name]);
      if (isBuiltin(name)) return require(name);
      const file = join(dirname(path), name);
      const found = [file, file.replace(/\.js$/, ".ts")].find(existsSync);
      if (!name.startsWith(".") || !found) throw new Error(`Cannot find module '${name}'`);
      return loaded(found);
    };
    new Function("exports", "load", code)((made[path] = {}), load);
    return made[path];
  };
  return { import: async (path) => loaded(path) };
};
