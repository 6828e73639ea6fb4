import * as app from "./index.js";

const state = app.__worker_init_state();

/** How to end each invocation that runs: WebAssembly that has panicked never answers. */
const running = new Set();

Object.defineProperty(state, "criticalError", {
  set: () => running.forEach((end) => end(new Error("the worker has panicked: what ran in it is lost"))),
});

async function run(call) {
  let end;
  const ended = new Promise((_, reject) => (end = reject));
  running.add(end);
  try {
    return await Promise.race([call(), ended]);
  } finally {
    running.delete(end);
  }
}
