// What the tests share: a deployment of their own in the Redis behind `delayline rest`, whose place the environment tells.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { DelayQueue } from "delayline";

const env = (name) => process.env[name] ?? assert.fail(`${name} is not set: run these tests by cargo`);

export const url = env("DELAYLINE_REST_URL");
export const token = env("DELAYLINE_REST_TOKEN");

/** Tests that wait for something that does not come fail. */
setTimeout(() => {
  console.error("the tests of this file took longer than two minutes");
  process.exit(1);
}, 120_000).unref();

let made = 0;

/** A queue that no other test knows. */
export function queue(options = {}, name = `q${process.pid}-${(made += 1)}`) {
  return new DelayQueue(name, { url, token, ...options });
}

/** What is to go wrong with the requests to come. */
export async function plan(...faults) {
  const response = await fetch(`${url}/_faults`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(faults),
  });
  assert.equal(response.status, 200, await response.text());
}

/** How many requests were made so far. */
export async function requests() {
  const response = await fetch(`${url}/_faults`, { headers: { authorization: `Bearer ${token}` } });
  return (await response.json()).requests;
}

/** Runs the command line on the same Redis. */
export async function cli(...args) {
  const { stdout } = await promisify(execFile)(env("DELAYLINE_CLI"), args, {
    // Nothing else: the variables of these tests are no settings.
    env: { PATH: env("PATH"), DELAYLINE_REDIS_URL: env("DELAYLINE_REDIS_URL") },
  });
  return stdout;
}

/** What `call` is rejected with, or throws; its code must be that. */
export async function rejection(code, call) {
  const error = await Promise.resolve().then(call).then(
    (value) => assert.fail(`it was not rejected, but answered ${JSON.stringify(value)}`),
    (error) => error,
  );
  assert.ok(error instanceof Error, String(error));
  assert.equal(error.code, code, error.message);
  assert.equal(error.name, "DelaylineError");
  return error;
}
