import * as glue from "./delayline_bg.js";

/** What the module imports. */
export const imports = { "./delayline_bg.js": glue };

/** Hands the classes their module. */
export function start(instance) {
  glue.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
}

export { DelayQueue, Engine } from "./delayline_bg.js";
