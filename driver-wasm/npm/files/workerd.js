// For Cloudflare Workers: the module comes compiled.
import module from "./delayline_bg.wasm";
import { imports, start } from "./start.js";

start(new WebAssembly.Instance(module, imports));

export { DelayQueue, Engine } from "./start.js";
