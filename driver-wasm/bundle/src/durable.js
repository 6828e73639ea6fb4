
const events = ["fetch", "alarm", "connect", "webSocketMessage", "webSocketClose", "webSocketError"];

/** Which instance of the WebAssembly runs now: the glue starts the next one, after a panic, when it is called. */
const instance = () => app.__worker_init_state().instanceId;

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
          return run(() => this.#alive()[event](...args));
        };
      }
    }
  };
}
