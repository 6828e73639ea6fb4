import assert from "node:assert/strict";
import { test } from "node:test";
import { Engine } from "delayline";
import { queue, rejection, token, url } from "./setup.mjs";

const name = () => queue().name;
const now = () => performance.now();

/** Sends a transmit over the REST endpoint; strings come back as bytes. */
async function send(commands) {
  const response = await fetch(`${url}/pipeline`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "upstash-encoding": "base64" },
    body: JSON.stringify(commands),
  });
  const decoded = (value) => {
    if (Array.isArray(value)) return value.map(decoded);
    return typeof value === "string" && value !== "OK" ? Uint8Array.from(Buffer.from(value, "base64")) : value;
  };
  return (await response.json()).map(({ result, error }) => (error ? new Error(error) : decoded(result)));
}

/** The loop of a driver: runs the engine until `is_over` says so. */
async function drive(engine, is_over, events = []) {
  for (const ends = now() + 10_000; now() < ends;) {
    for (let moved = true; moved;) {
      moved = false;
      for (let transmit; (transmit = engine.pollTransmit()); moved = true) {
        engine.handleReplies(now(), transmit.ticket, await send(transmit.commands));
      }
      for (let event; (event = engine.pollEvent()); moved = true) {
        events.push(event);
        if (is_over(event)) return events;
      }
    }
    const at = engine.pollTimeout() ?? now() + 1_000;
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, at - now())));
    engine.handleTimeout(now());
  }
  return assert.fail(`it went on for ever: ${JSON.stringify(events)}`);
}

/** What is answered to the call that `tell` makes. */
async function answer(engine, tell) {
  tell(now(), 7);
  const event = (await drive(engine, ({ type, token }) => type === "answered" && token === 7)).at(-1);
  if (event.error) throw event.error;
  return event.answer;
}

test("each call is answered once, over a transport of one's own", async () => {
  const engine = new Engine(now());
  const q = name();
  const body = Uint8Array.from({ length: 256 }, (_, n) => n);
  assert.equal(await answer(engine, (at, token) => engine.open(at, token)), undefined);
  const published = await answer(engine, (at, token) => engine.publish(at, token, q, body, { id: "a", delayMs: 60_000 }));
  assert.deepEqual([published.id, published.duplicate], ["a", false]);
  assert.equal((await answer(engine, (at, token) => engine.inspect(at, token, q, "a"))).state, "delayed");
  const moved = await answer(engine, (at, token) => engine.reschedule(at, token, q, "a", { delayMs: 0 }));
  assert.equal(moved.outcome, "moved");
  const [job] = await answer(engine, (at, token) => engine.take(at, token, [q], { waitMs: 5_000 }));
  assert.deepEqual(job.payload, body);
  const ends = await answer(engine, (at, token) => engine.extend(at, token, job.lease, { leaseMs: 60_000 }));
  assert.ok(ends > job.leaseEndsMs);
  const settle = (verdict) => answer(engine, (at, token) => engine.settle(at, token, job.lease, verdict));
  assert.equal(await settle({ verdict: "nack", delayMs: 60_000, reason: "later" }), "ok");
  assert.equal(await answer(engine, (at, token) => engine.cancel(at, token, q, "a")), "cancelled");
  await rejection("gone", () => settle({ verdict: "ack" }));
  assert.equal((await answer(engine, (at, token) => engine.stats(at, token, q))).counters.cancelled, 1);
  engine.drain(now());
  await drive(engine, ({ type }) => type === "drained");
  assert.ok(engine.isDrained && engine.isIdle && engine.room === 0);
});

test("jobs of a subscription come as events, and are settled by what they are held by", async () => {
  const q = name();
  const engine = new Engine(now(), { subscriptions: [{ queue: q, max: 5 }], slots: 5, pump: "always" });
  await queue({}, q).publishMany([1, 2, 3].map((payload) => ({ payload, delayMs: 100 })));
  const seen = [];
  const events = await drive(engine, (event) => {
    if (event.type === "run") {
      seen.push(event.job.payload);
      engine.settleHeld(now(), event.job.held, { verdict: "ack" });
    }
    return event.type === "settled" && seen.length === 3 && engine.held === 0;
  });
  assert.deepEqual(seen.sort(), [1, 2, 3]);
  assert.ok(events.some(({ type, outcome }) => type === "settled" && outcome === "ok"));
  engine.drain(now());
  await drive(engine, ({ type }) => type === "drained");
});

test("without any transport: what is to be sent is text, and is sent again when it is lost", () => {
  const engine = new Engine(0, { flightMs: 1_000, timeoutMs: 5_000 });
  engine.publish(0, 1, "orders", { a: 1 }, { id: "x" });
  const first = engine.pollTransmit();
  assert.equal(first.commands.length, 1);
  assert.deepEqual([first.commands[0][0], first.commands[0][2], first.commands[0][3]], ["EVALSHA", "11", "{dl:0.0}:agenda"]);
  assert.ok(first.commands.flat().every((word) => typeof word === "string"));
  assert.equal(engine.pollTransmit(), undefined);
  assert.equal(engine.pollEvent(), undefined);
  engine.handleReplies(1, first.ticket, [new Error("NOSCRIPT No matching script. Please use EVAL.")]);
  const second = engine.pollTransmit();
  assert.equal(second.commands[0][0], "EVAL");
  engine.handleLoss(2, second.ticket);
  const third = engine.pollTransmit() ?? (engine.handleTimeout(engine.pollTimeout()), engine.pollTransmit());
  assert.notEqual(third.ticket, second.ticket);
  const micros = "1795282556678000";
  engine.handleReplies(50, third.ticket, [["ok", micros, micros, "n"]]);
  const { type, token, answer, error } = engine.pollEvent();
  assert.equal(error, undefined);
  assert.deepEqual([type, token, answer.id, answer.dueMs], ["answered", 1, "x", 1_795_282_556_678]);
  engine.handleReplies(51, second.ticket, [null]);
  assert.equal(engine.pollEvent(), undefined);
  engine.handleReplies(52, 999, ["what nobody asked for"]);
  engine.handleLoss(53, -1);
});

test("a call that nothing answers is answered when its time is over", () => {
  const engine = new Engine(0, { timeoutMs: 2_000, flightMs: 500 });
  engine.stats(0, 3, "orders");
  let events = 0;
  for (let at = 0; at <= 2_000; at = Math.max(at + 1, engine.pollTimeout() ?? 9_999)) {
    engine.handleTimeout(at);
    while (engine.pollTransmit());
    for (let event; (event = engine.pollEvent());) {
      events += 1;
      assert.deepEqual([event.token, event.error.code], [3, "unknown"]);
    }
  }
  assert.equal(events, 1);
});

test("what cannot be used is refused", async () => {
  const engine = new Engine(0);
  for (const [code, call] of [
    ["bad_option", () => new Engine(0, { pump: "sometimes" })],
    ["bad_option", () => new Engine(0, { leaseMs: 1 })],
    ["bad_option", () => new Engine(0, { subscriptions: {} })],
    ["unknown_option", () => new Engine(0, { subscriptions: [{ queue: "a", wieght: 1 }] })],
    ["unknown_option", () => new Engine(0, { url: "https://x" })],
    ["bad_option", () => engine.stats(0, -1, "a")],
    ["bad_option", () => engine.stats(0, 1.5, "a")],
    ["bad_queue_name", () => engine.stats(0, 1, "a b")],
    ["bad_option", () => engine.take(0, 1, [])],
    ["bad_option", () => engine.settleHeld(0, 1, { verdict: "maybe" })],
    ["bad_lease", () => engine.settle(0, 1, "x", { verdict: "ack" })],
  ]) {
    await rejection(code, call);
  }
});
