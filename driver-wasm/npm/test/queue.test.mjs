import assert from "node:assert/strict";
import { test } from "node:test";
import { cli, queue, rejection, requests, token } from "./setup.mjs";

const allBytes = Uint8Array.from({ length: 256 }, (_, n) => n);
const taken = async (q, options) => {
  const jobs = await q.take({ waitMs: 5_000, ...options });
  assert.equal(jobs.length, 1);
  return jobs[0];
};

test("a job is published, taken when it is due, and acknowledged", async () => {
  const q = queue();
  const before = Date.now();
  const published = await q.publish({ to: "ann", n: [1, 2.5, null] }, {
    id: "welcome:17", delayMs: 150, ttlMs: 60_000, attempts: 3, backoff: "15s 3m", headers: { tenant: "acme" },
  });
  assert.deepEqual({ ...published, dueMs: 0 }, { id: "welcome:17", dueMs: 0, duplicate: false, replaced: false });
  assert.ok(published.dueMs >= before + 150 && published.dueMs < Date.now() + 1_000);
  // On a machine that is slow enough it is due by now.
  const [soon] = await q.take({ leaseMs: 5_000 });
  assert.ok(!soon || Date.now() >= published.dueMs, "never early");
  const job = soon ?? await taken(q, { leaseMs: 5_000 });
  assert.ok(Date.now() >= published.dueMs, "never early");
  const { lease, lateMs, leaseEndsMs, publishedMs, body, ...rest } = job;
  assert.deepEqual(rest, {
    id: "welcome:17", queue: q.name, attempt: 1, maxAttempts: 3, deliveries: 1, dueMs: published.dueMs,
    headers: { tenant: "acme" }, contentType: "application/json", lastReason: null,
    payload: { to: "ann", n: [1, 2.5, null] },
  });
  assert.equal(new TextDecoder().decode(body), '{"to":"ann","n":[1,2.5,null]}');
  assert.ok(lateMs >= 0 && leaseEndsMs > Date.now() && publishedMs >= before);
  assert.equal(await q.ack(lease), "ok");
  await rejection("gone", () => q.ack(lease));
  assert.equal(await q.inspect("welcome:17"), null);
});

test("payloads come back as they were given", async () => {
  const q = queue();
  for (const [payload, read, contentType] of [
    [allBytes, allBytes, "application/octet-stream"],
    [allBytes.buffer, allBytes, "application/octet-stream"],
    [allBytes.subarray(250), allBytes.subarray(250), "application/octet-stream"],
    [new DataView(allBytes.buffer, 1, 2), Uint8Array.of(1, 2), "application/octet-stream"],
    [Buffer.from("text"), new TextEncoder().encode("text"), "application/octet-stream"],
    ["grüße, 世界 🎉 \u2028 \u0000", "grüße, 世界 🎉 \u2028 \u0000", "application/json"],
    [{ when: new Date(0) }, { when: "1970-01-01T00:00:00.000Z" }, "application/json"],
    [null, null, "application/json"],
    [0, 0, "application/json"],
    ["", "", "application/json"],
    [[], [], "application/json"],
  ]) {
    await q.publish(payload);
    const job = await taken(q);
    assert.deepEqual(job.payload, read);
    assert.equal(job.contentType, contentType);
    await q.ack(job.lease);
  }
  await q.publish("plain", { contentType: "text/plain" });
  const text = await taken(q);
  assert.equal(text.payload, "plain");
  assert.deepEqual(text.body, new TextEncoder().encode("plain"));
  await q.publish(Uint8Array.of(0x7b, 0x7d), { contentType: "application/json" });
  assert.deepEqual((await taken(q)).payload, {});
});

test("an id in use is a duplicate, or is replaced", async () => {
  const q = queue();
  const first = await q.publish("a", { id: "one", delayMs: 60_000 });
  assert.equal(first.duplicate, false);
  assert.deepEqual(await q.publish("b", { id: "one" }), { id: "one", dueMs: null, duplicate: true, replaced: false });
  const replaced = await q.publish("c", { id: "one", delayMs: 90_000, replace: true });
  assert.ok(replaced.replaced && replaced.dueMs > first.dueMs);
  assert.equal((await q.inspect("one")).payload, "c");
});

test("due times are absolute, as a date or a number", async () => {
  const q = queue();
  const at = Date.now() + 3_600_000;
  assert.equal((await q.publish(1, { at })).dueMs, at);
  assert.equal((await q.publish(1, { at: new Date(at) })).dueMs, at);
  assert.equal((await q.publish(1, { at: at - 0.5 })).dueMs, at, "rounded up");
});

test("waiting jobs are inspected, rescheduled and cancelled", async () => {
  const q = queue();
  const { id, dueMs } = await q.publish({ a: 1 }, { delayMs: 60_000, headers: { x: "y" }, backoff: "none" });
  const kept = await q.inspect(id);
  const { publishedMs, ...rest } = kept;
  assert.deepEqual(rest, {
    id, state: "delayed", dueMs, leaseEndsMs: null, diedMs: null, expiresMs: null, attempt: 0, maxAttempts: null,
    deliveries: 0, lastReason: null, headers: { x: "y" }, contentType: "application/json", backoff: "none",
    payload: { a: 1 }, body: new TextEncoder().encode('{"a":1}'),
  });
  const moved = await q.reschedule(id, { delayMs: 120_000 });
  assert.equal(moved.outcome, "moved");
  assert.ok(moved.dueMs >= dueMs + 50_000);
  assert.deepEqual(await q.reschedule(id, { at: new Date(dueMs) }), { outcome: "moved", dueMs });
  assert.equal(await q.cancel(id), "cancelled");
  assert.equal(await q.cancel(id), "gone");
  assert.deepEqual(await q.reschedule(id, { delayMs: 1 }), { outcome: "gone", dueMs: null });
  await q.publish(1, { id: "held" });
  const job = await taken(q);
  assert.equal(await q.cancel("held"), "leased");
  assert.equal((await q.reschedule("held", { delayMs: 1 })).outcome, "leased");
  await q.bury(job.lease, { reason: "no" });
  assert.equal(await q.cancel("held"), "dead");
});

test("each verdict ends a delivery in its way", async () => {
  const q = queue();
  await q.publish(1, { id: "j", attempts: 3 });
  assert.equal(await q.nack((await taken(q)).lease, { delayMs: 0, reason: "größer" }), "ok");
  let job = await taken(q);
  assert.deepEqual([job.attempt, job.deliveries, job.lastReason], [2, 2, "größer"]);
  assert.equal(await q.snooze(job.lease, { delayMs: 50 }), "ok");
  job = await taken(q);
  assert.deepEqual([job.attempt, job.deliveries], [2, 3]);
  const ends = await q.extend(job.lease, { leaseMs: 600_000 });
  assert.ok(ends > job.leaseEndsMs + 500_000);
  assert.equal(await q.release(job.lease), "ok");
  assert.equal(await q.release(job.lease), "repeat");
  job = await taken(q);
  assert.deepEqual([job.attempt, job.deliveries], [2, 4]);
  assert.equal(await q.nack(job.lease, { delayMs: 0 }), "ok");
  assert.equal(await q.nack((await taken(q)).lease, { reason: "last" }), "dead");
  const dead = await q.inspect("j");
  assert.deepEqual([dead.state, dead.lastReason, dead.attempt], ["dead", "last", 3]);
  assert.ok(dead.diedMs > 0);
});

test("a lease that has ended is stale", async () => {
  const q = queue();
  await q.publish(1, { id: "slow" });
  const { lease } = await taken(q, { leaseMs: 1_000 });
  const again = await taken(q);
  assert.deepEqual([again.id, again.attempt], ["slow", 2]);
  await rejection("stale", () => q.ack(lease));
  await rejection("stale", () => q.extend(lease, { leaseMs: 1_000 }));
  assert.equal(await q.ack(again.lease), "ok");
});

test("many jobs are published in few requests, and taken together", async () => {
  const q = queue();
  await q.stats();
  const before = await requests();
  const published = await q.publishMany(Array.from({ length: 1_200 }, (_, n) => ({ payload: { n }, id: `n${n}` })));
  assert.ok((await requests()) - before <= 4);
  assert.equal(published.length, 1_200);
  assert.equal(published[1_199].id, "n1199");
  const again = await q.publishMany(new Set([{ payload: 1, id: "n0" }, { payload: 2 }]));
  assert.deepEqual(again.map(({ duplicate }) => duplicate), [true, false]);
  assert.equal((await q.take({ count: 256 })).length, 256);
  assert.deepEqual(await q.publishMany([]), []);
  const { sizes, counters, config, configVersion } = await q.stats();
  assert.deepEqual(sizes, { ready: 945, delayed: 0, leased: 256, dead: 0 });
  assert.deepEqual([counters.published, counters.granted, configVersion], [1_201, 256, 0]);
  assert.equal(config.attempts, null);
});

test("what is not accepted does not hide what is", async () => {
  const q = queue();
  await cli("config", "set", q.name, "max_jobs=2", "--create");
  const jobs = Array.from({ length: 600 }, (_, payload) => ({ payload, delayMs: 60_000 }));
  const error = await rejection("partly_published", () => q.publishMany(jobs));
  assert.equal(error.message, "100 of 600 jobs were not accepted: see outcomes");
  assert.equal(error.outcomes[499].status, "fulfilled");
  assert.ok(error.outcomes[499].value.dueMs > Date.now());
  assert.equal(error.outcomes[500].status, "rejected");
  assert.equal(error.outcomes[500].reason.code, "queue_full");
  await rejection("queue_full", () => q.publish(5));
  const wrong = await rejection("bad_attempts", () => q.publishMany([{ payload: 1 }, { payload: 2, attempts: 0 }]));
  assert.match(wrong.message, /^job 1: 0 attempts/);
  assert.equal((await q.stats()).sizes.delayed, 500);
});

test("jobs of the command line are taken here, and the other way round", async () => {
  const q = queue();
  await cli("publish", q.name, '{"from":"cli"}', "--id", "native");
  const job = await taken(q);
  assert.deepEqual([job.id, job.payload], ["native", { from: "cli" }]);
  await q.ack(job.lease);
  await q.publish({ from: "js", say: "grüße" }, { id: "script" });
  assert.deepEqual(JSON.parse(await cli("job", q.name, "script", "--json")).payload, { from: "js", say: "grüße" });
  const out = await cli("consume", q.name, "--count", "1", "--exec", "cat");
  assert.match(out, /grüße/);
});

test("calls overlap", async () => {
  const q = queue();
  const waiting = Promise.all(Array.from({ length: 4 }, () => q.take({ waitMs: 2_000, count: 10 })));
  const published = await Promise.all(Array.from({ length: 20 }, (_, n) => q.publish(n)));
  assert.equal(new Set(published.map(({ id }) => id)).size, 20);
  const at_once = (await waiting).flat();
  const rest = [];
  while (at_once.length + rest.length < 20) rest.push(...(await q.take({ count: 20, waitMs: 2_000 })));
  const seen = [...at_once, ...rest].map(({ payload }) => payload).sort((a, b) => a - b);
  assert.deepEqual(seen, Array.from({ length: 20 }, (_, n) => n));
});

test("a take that waited gives the pump lease back", async () => {
  const q = queue();
  assert.deepEqual(await q.take({ waitMs: 300 }), []);
  const before = Date.now();
  await q.publish(1, { delayMs: 500 });
  const out = await cli("consume", q.name, "--count", "1", "--exec", "cat");
  assert.match(out, /1/);
  assert.ok(Date.now() - before < 5_000, "a worker that comes after it does not wait for its lease to end");
});

test("what cannot be used is refused, and says what to do", async () => {
  const q = queue();
  const lease = "MSBxIDEgMSBh";
  for (const [code, says, call] of [
    ["unknown_option", /"dealyMs" is not an option of publish: use id, delayMs/, () => q.publish(1, { dealyMs: 5 })],
    ["bad_option", /delayMs must be a number of milliseconds/, () => q.publish(1, { delayMs: "5s" })],
    ["bad_option", /delayMs must be a number of milliseconds/, () => q.publish(1, { delayMs: NaN })],
    ["bad_option", /delayMs must be a number of milliseconds/, () => q.publish(1, { delayMs: -1 })],
    ["bad_option", /id is null: leave it out/, () => q.publish(1, { id: null })],
    ["bad_option", /at must be a valid Date/, () => q.publish(1, { at: new Date("no") })],
    ["bad_due", /exclude each other/, () => q.publish(1, { at: 1, delayMs: 1 })],
    ["delay_too_long", /10 years/, () => q.publish(1, { delayMs: 1e15 })],
    ["ttl_too_short", /would never run/, () => q.publish(1, { delayMs: 5_000, ttlMs: 10 })],
    ["bad_attempts", /0 attempts/, () => q.publish(1, { attempts: 0 })],
    ["bad_option", /attempts is not a whole number/, () => q.publish(1, { attempts: 1.5 })],
    ["bad_option", /has no unit/, () => q.publish(1, { backoff: "5" })],
    ["bad_option", /without an id can replace none/, () => q.publish(1, { replace: true })],
    ["bad_option", /headers.x must be a string/, () => q.publish(1, { headers: { x: 1 } })],
    ["bad_job_id", /job id "a b" is not valid/, () => q.publish(1, { id: "a b" })],
    ["bad_payload", /undefined, functions and symbols/, () => q.publish(undefined)],
    ["bad_payload", /BigInt/, () => q.publish(1n)],
    ["bad_payload", /needs a payload/, () => q.publishMany([{ id: "x" }])],
    ["bad_option", /needs an array/, () => q.publishMany(17)],
    ["payload_too_large", /over the limit/, () => q.publish(new Uint8Array(2 << 20))],
    ["bad_job", /./, () => q.publish(1, { headers: { x: "y".repeat(5_000) } })],
    ["bad_option", /257 is no number of jobs to take/, () => q.take({ count: 257 })],
    ["bad_option", /a lease cannot last/, () => q.take({ leaseMs: 1 })],
    ["bad_option", /5 minutes/, () => q.take({ waitMs: 1e9 })],
    ["bad_due", /needs a time/, () => q.reschedule("a", {})],
    ["bad_lease", /is no lease/, () => q.ack("nonsense")],
    ["bad_option", /a snooze needs a delay/, () => q.snooze(lease, {})],
    ["unknown_option", /"reason" is not an option of snooze/, () => q.snooze(lease, { delayMs: 1, reason: "x" })],
    ["bad_option", /must be a function/, () => q.pump({ handler: "x" })],
    ["bad_queue_name", /queue name "a b"/, () => queue({}, "a b")],
    ["bad_endpoint", /no address of a REST endpoint/, () => queue({ url: "redis://x" })],
    ["bad_option", /needs token/, () => queue({ token: undefined })],
    ["unknown_option", /"tokn" is not an option of a DelayQueue/, () => queue({ tokn: token })],
    ["bad_option", /shards is 0/, () => queue({ shards: 0 })],
  ]) {
    assert.match((await rejection(code, call)).message, says);
  }
});
