// Searches the built site with its own script: node search.js SITE QUERY ... prints the best page of each.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [folder, ...queries] = process.argv.slice(2);
const nothing = () => {};
const context = vm.createContext({
  SPHINX_HIGHLIGHT_ENABLED: false,
  DOCUMENTATION_OPTIONS: {},
  localStorage: {},
  _: (text) => text,
  _ready: nothing,
  document: {
    addEventListener: nothing,
    getElementById: () => ({ lastChild: null }),
    querySelectorAll: () => [],
    readyState: "loading",
  },
});
context.window = context;
for (const name of ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"])
  vm.runInContext(fs.readFileSync(path.join(folder, name), "utf8"), context);
for (const query of queries) {
  const found = vm.runInContext(
    `Search._performSearch(...Search._parseQuery(${JSON.stringify(query)}))`, context);
  console.log(found[found.length - 1][0]); // the best is the last
}
