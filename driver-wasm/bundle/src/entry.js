import * as app from "./index.js";

/**
 * Which instance of the WebAssembly runs now. A module that has panicked must not go on: the glue starts the next one
 * when it is called, and this is a call that does nothing else.
 */
const instance = () => app.__worker_init_state().instanceId;

const events = ["fetch", "alarm", "connect", "webSocketMessage", "webSocketClose", "webSocketError"];

/** A Durable Object that is made anew, of what it has stored, when a panic took the instance it was in. */
function durable(Class) {
  return class {
    #arguments;
    #object;
    #instance;

    constructor(...args) {
      this.#arguments = args;
      this.#alive();
    }

    #alive() {
      const now = instance();
      if (this.#instance !== now) {
        this.#object = new Class(...this.#arguments);
        this.#instance = now;
      }
      return this.#object;
    }

    static {
      for (const event of events.filter((event) => event in Class.prototype)) {
        this.prototype[event] = function (...args) {
          return this.#alive()[event](...args);
        };
      }
    }
  };
}
