import assert from "node:assert/strict";
import { test } from "node:test";
import { plan, queue } from "./setup.mjs";

test("a run hands due jobs to its handler, and settles them by what becomes of it", async () => {
  const q = queue();
  const texts = ["done", "promised", "throws", "rejects", "snooze", "bury", "release", "odd", "other"];
  await q.publishMany(texts.map((payload) => ({ payload, id: payload, backoff: "1h" })));
  const seen = [];
  const handler = (job) => {
    seen.push(job.payload);
    assert.equal(job.queue, q.name);
    switch (job.payload) {
      case "promised": return Promise.resolve({ some: "answer" });
      case "throws": throw new Error("it threw");
      case "rejects": return Promise.reject("a text");
      case "snooze": return { verdict: "snooze", delayMs: 60_000 };
      case "bury": return { verdict: "bury", reason: "hopeless" };
      case "release": return { verdict: "release" };
      case "odd": return { verdict: "perhaps" };
      default: return undefined;
    }
  };
  const summary = await q.pump({ handler, forMs: 3_000, stayMs: 0 });
  assert.deepEqual([summary.acked, summary.retried, summary.died, summary.released], [3, 4, 1, 1]);
  assert.deepEqual([summary.unsettled, summary.trouble], [0, null]);
  assert.deepEqual(new Set(seen), new Set(texts));
  const kept = async (id) => {
    const { state, lastReason } = await q.inspect(id);
    return [state, lastReason];
  };
  assert.deepEqual(await kept("throws"), ["delayed", "it threw"]);
  assert.deepEqual(await kept("rejects"), ["delayed", "a text"]);
  assert.deepEqual(await kept("snooze"), ["delayed", null]);
  assert.deepEqual(await kept("bury"), ["dead", "hopeless"]);
  assert.match((await kept("odd"))[1], /"perhaps" is no verdict/);
  assert.equal(await q.inspect("done"), null);
});

test("a run waits for what is due soon, and leaves in time", async () => {
  const q = queue();
  await q.publish("soon", { delayMs: 400 });
  const payloads = [];
  const started = Date.now();
  const { delivered, acked } = await q.pump({ handler: async ({ payload }) => payloads.push(payload), forMs: 1_500 });
  assert.deepEqual([delivered, acked, payloads], [1, 1, ["soon"]]);
  assert.ok(Date.now() - started < 5_000);
});

test("a handler that takes too long is a failed attempt", async () => {
  const q = queue();
  await q.publish("slow", { id: "slow" });
  const never = new Promise(() => {});
  const { retried } = await q.pump({ handler: () => never, forMs: 500, deliveryMs: 300 });
  assert.equal(retried, 1);
  assert.match((await q.inspect("slow")).lastReason, /longer than 300 ms/);
});

test("without a handler a run only tends", async () => {
  const q = queue();
  await q.publish("stays");
  await q.publish("expires", { ttlMs: 1 });
  const [{ id }] = await q.take({ leaseMs: 1_000 });
  const summary = await q.pump({ forMs: 2_500, requests: 20 });
  assert.equal(summary.delivered, 0);
  assert.ok(summary.tended >= 1);
  const { sizes } = await q.stats();
  assert.equal(sizes.leased, 0);
  assert.equal((await q.inspect(id)).attempt, 1);
});

test("a run keeps to its requests, and gets over faults", async () => {
  const q = queue();
  await q.publishMany(Array.from({ length: 50 }, (_, payload) => ({ payload })));
  let calls = 0;
  const few = await q.pump({ handler: () => { calls += 1; }, requests: 12, forMs: 3_000 });
  assert.ok(calls > 0 && calls <= 10 && few.requests <= 12, JSON.stringify(few));
  assert.equal(few.ended, "requests");
  await plan({ fault: "status", status: 502 }, { fault: "drop" });
  const rest = await q.pump({ handler: () => { calls += 1; }, requests: 200, forMs: 5_000, stayMs: 0 });
  assert.equal(calls, 50);
  assert.ok(rest.lost >= 1);
  const { counters } = await q.stats();
  assert.equal(counters.acked, 50);
});
