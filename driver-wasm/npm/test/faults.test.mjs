// What goes wrong on the way: each fault befalls the requests of one test, so these run one after the other.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { plan, queue, rejection } from "./setup.mjs";

/** A queue whose deployment was checked, so that the next request is the one that counts. */
async function opened(options) {
  const q = queue(options);
  await q.stats();
  return q;
}

for (const fault of [
  { fault: "status", status: 500 },
  { fault: "status", status: 429 },
  { fault: "drop" },
  { fault: "cut" },
  { fault: "garbage" },
  { fault: "delay", ms: 300 },
  { fault: "flush" },
]) {
  test(`a publish that meets ${JSON.stringify(fault)} is sent again and done once`, async () => {
    const q = await opened();
    await plan(fault);
    const published = await q.publish({ fault }, { delayMs: 60_000 });
    assert.equal(published.duplicate, false);
    const { sizes, counters } = await q.stats();
    assert.deepEqual([sizes.delayed, counters.published], [1, 1]);
  });
}

test("a publish whose request hangs is sent again and done once", async () => {
  const q = await opened({ timeoutMs: 20_000 });
  await plan({ fault: "hang" }, { fault: "hang_after" });
  assert.equal((await q.publish(1, { id: "a" })).duplicate, false);
  assert.equal((await q.stats()).counters.published, 1);
});

test("jobs whose delivery was lost come once", async () => {
  const q = await opened();
  await q.publish(1);
  await plan({ fault: "drop" });
  const [job] = await q.take({ waitMs: 2_000 });
  assert.deepEqual([job.attempt, job.deliveries], [1, 1]);
  await plan({ fault: "cut" });
  assert.equal(await q.ack(job.lease), "ok");
  assert.equal((await q.stats()).counters.acked, 1);
});

test("a call that is refused for as long as it waits was not sent", async () => {
  const q = queue({ timeoutMs: 500, fetch: async () => new Response("", { status: 429 }) });
  const error = await rejection("not_sent", () => q.publish(1));
  assert.match(error.message, /fewer requests/);
  assert.match(error.cause.message, /fewer requests/);
});

test("a call that is never answered is unknown", async () => {
  const hung = createServer((socket) => socket.unref()).listen(0, "127.0.0.1").unref();
  await new Promise((resolve) => hung.once("listening", resolve));
  const url = `http://127.0.0.1:${hung.address().port}`;
  let hangs = false;
  const q = await opened({ timeoutMs: 1_000, fetch: (real, init) => fetch(hangs ? url : real, init) });
  hangs = true;
  const started = Date.now();
  const nameless = await rejection("unknown", () => q.publish(1));
  assert.match(nameless.message, /with an id it could be repeated safely/);
  assert.match((await rejection("unknown", () => q.publish(1, { id: "a" }))).message, /with the same id/);
  await rejection("unknown", () => q.take());
  await rejection("unknown", () => q.stats());
  assert.ok(Date.now() - started < 8_000);
  await rejection("not_sent", () => queue({ url, timeoutMs: 500 }).publish(1));
});

test("where nothing listens, nothing is sent, and the cause is told", async () => {
  const q = queue({ url: "http://127.0.0.1:9", timeoutMs: 500 });
  const error = await rejection("not_sent", () => q.publish(1));
  assert.ok(error.cause instanceof Error);
  await rejection("unreachable", () => q.pump({ forMs: 200, deliveryMs: 100, flightMs: 300 }));
});

test("a wrong token is denied", async () => {
  const q = queue({ token: "wrong", timeoutMs: 500 });
  assert.match((await rejection("not_sent", () => q.publish(1))).message, /denies access/);
  await rejection("unreachable", () => q.pump({ forMs: 200, deliveryMs: 100, flightMs: 300 }));
});

test("a wrong number of shards is found out before anything else is asked", async () => {
  let made = 0;
  const counted = (...args) => {
    made += 1;
    return fetch(...args);
  };
  const right = queue({ fetch: counted });
  await right.stats();
  assert.equal(made, 2);
  await right.stats();
  assert.equal(made, 3);
  made = 0;
  const wrong = queue({ shards: 4, fetch: counted });
  assert.match((await rejection("wrong_shards", () => wrong.publish(1))).message, /has 1 shards, and 4 were asked for/);
  assert.equal(made, 1);
  await rejection("wrong_shards", () => wrong.pump({ forMs: 200 }));
});

test("another fetch may be given", async () => {
  const seen = [];
  const q = queue({
    fetch: (url, init) => {
      seen.push([url, init.method, Object.fromEntries(init.headers).authorization]);
      return fetch(url, init);
    },
  });
  await q.publish(1);
  assert.equal(seen.length, 2);
  for (const [url, method, authorization] of seen) {
    assert.match(url, /\/pipeline$/);
    assert.deepEqual([method, authorization], ["POST", `Bearer ${process.env.DELAYLINE_REST_TOKEN}`]);
  }
  const broken = queue({ timeoutMs: 300, fetch: () => { throw new TypeError("no network here"); } });
  assert.equal((await rejection("not_sent", () => broken.publish(1))).cause.message, "no network here");
});
