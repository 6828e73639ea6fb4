// For browsers and what is like them: the module is fetched from where this file is.
import { imports, start } from "./start.js";

const response = await fetch(new URL("./delayline_bg.wasm", import.meta.url));
if (!response.ok) throw new Error(`delayline_bg.wasm: HTTP status ${response.status} from ${response.url}`);
const { instance } = await WebAssembly.instantiate(await response.arrayBuffer(), imports);
start(instance);

export { DelayQueue, Engine } from "./start.js";
