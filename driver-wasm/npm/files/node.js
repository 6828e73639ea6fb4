// For Node, Bun and Deno: the module is a file, read at once.
import { readFileSync } from "node:fs";
import { imports, start } from "./start.js";

const module = new WebAssembly.Module(readFileSync(new URL("./delayline_bg.wasm", import.meta.url)));
start(new WebAssembly.Instance(module, imports));

export { DelayQueue, Engine } from "./start.js";
