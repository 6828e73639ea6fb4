// Every method as TypeScript sees it, and misuses that must not compile. Nothing here is run.
import {
  DelayQueue,
  Engine,
  type Cancelled,
  type DelaylineError,
  type Event,
  type Job,
  type KeptJob,
  type Published,
  type QueueStats,
  type Reply,
  type Rescheduled,
  type Settled,
  type Summary,
  type Transmit,
  type Verdict,
} from "delayline";

interface Mail {
  to: string;
}

export async function queue(): Promise<void> {
  const q = new DelayQueue("mails", {
    url: "https://x.upstash.io", token: "t", fetch, prefix: "dl", shards: 1, timeoutMs: 1, pollMs: 100, maxPayloadBytes: 1,
  });
  const name: string = q.name;
  const published: Published = await q.publish({ to: name });
  const due: number | null = published.dueMs;
  await q.publish(new Uint8Array(1), {
    id: "a", delayMs: due ?? 0, ttlMs: 1, attempts: 1, backoff: "none", replace: true, headers: { a: "b" }, contentType: "a/b",
  });
  await q.publish(1, { at: new Date() });
  await q.publish(1, { at: Date.now() });
  const many: Published[] = await q.publishMany([{ payload: 1 }, { payload: "b", delayMs: 1 }]);
  await q.publishMany(new Set([{ payload: many }]));
  const cancelled: Cancelled = await q.cancel("a");
  const rescheduled: Rescheduled = await q.reschedule("a", { delayMs: 1 });
  await q.reschedule(cancelled, { at: rescheduled.dueMs ?? new Date() });
  const kept: KeptJob | null = await q.inspect("a");
  const state: "ready" | "delayed" | "leased" | "dead" | undefined = kept?.state;
  const stats: QueueStats = await q.stats();
  const acked: number = stats.counters.acked + stats.sizes.ready;
  const jobs: Job<Mail>[] = await q.take({ count: acked, leaseMs: 1, waitMs: 1 });
  for (const { payload, lease, body } of jobs) {
    const to: string = payload.to + state + body.length;
    const settled: Settled = await q.ack(lease);
    await q.nack(lease, { delayMs: 1, reason: to + settled });
    await q.nack(lease);
    await q.snooze(lease, { delayMs: 1 });
    await q.release(lease);
    await q.bury(lease, { reason: "x" });
    const ends: number = await q.extend(lease, { leaseMs: 1 });
    console.log(ends);
  }
  const verdict: Verdict = { verdict: "snooze", delayMs: 1 };
  const summary: Summary = await q.pump({
    handler: async (job: Job<Mail>) => (job.payload.to ? verdict : undefined),
    requests: 1, requestsPerJob: 1, atOnce: 1, forMs: 1, stayMs: 1, deliveryMs: 1, flightMs: 1,
  });
  const why: "idle" | "time" | "requests" = summary.ended;
  try {
    await q.take();
  } catch (error) {
    const { code, cause, outcomes } = error as DelaylineError;
    if (code === "partly_published") console.log(outcomes?.map(({ status }) => status), cause?.message, why);
    // @ts-expect-error there is no such code
    console.log(code === "not_a_code");
  }
  // @ts-expect-error a queue needs its place
  new DelayQueue("mails");
  // @ts-expect-error and a token
  new DelayQueue("mails", { url: "https://x" });
  // @ts-expect-error a misspelt option
  await q.publish(1, { dealyMs: 1 });
  // @ts-expect-error milliseconds are numbers
  await q.publish(1, { delayMs: "5s" });
  // @ts-expect-error and no bigints
  await q.publish(1, { delayMs: 5n });
  // @ts-expect-error a job has a payload
  await q.publishMany([{ id: "a" }]);
  // @ts-expect-error many are many
  await q.publishMany({ payload: 1 });
  // @ts-expect-error an id is a text
  await q.cancel(17);
  // @ts-expect-error a new time is needed
  await q.reschedule("a");
  // @ts-expect-error and is one of two
  await q.reschedule("a", {});
  // @ts-expect-error a snooze has a delay
  await q.snooze("l");
  // @ts-expect-error a lease has a length
  await q.extend("l", {});
  // @ts-expect-error null is no lease
  await q.ack(null);
  // @ts-expect-error a handler is a function
  await q.pump({ handler: 17 });
  // @ts-expect-error there may be none
  (await q.inspect("a")).state;
  // @ts-expect-error the name stays
  q.name = "x";
  using disposed = q;
  disposed.free();
}

export function engine(): void {
  const engine = new Engine(0, {
    prefix: "dl", shards: 1, subscriptions: [{ queue: "a", weight: 1, max: 1 }], slots: 1, pump: "always", leaseMs: 1_000,
    pollMs: 100, flightMs: 1, timeoutMs: 1, maxPayloadBytes: 1,
  });
  engine.open(0, 1);
  engine.publish(0, 1, "q", { a: 1 }, { id: "a" });
  engine.take(0, 1, ["q"], { count: 1 });
  engine.settle(0, 1, "lease", { verdict: "nack", reason: "x" });
  engine.extend(0, 1, "lease", { leaseMs: 1 });
  engine.cancel(0, 1, "q", "a");
  engine.reschedule(0, 1, "q", "a", { at: 0 });
  engine.inspect(0, 1, "q", "a");
  engine.stats(0, 1, "q");
  engine.forget(0, 1);
  const transmit: Transmit | undefined = engine.pollTransmit();
  if (transmit) {
    const commands: string[][] = transmit.commands;
    const replies: Reply[] = [null, 1, "ok", new Uint8Array(1), ["nested", [1n]], new Error("ERR")];
    engine.handleReplies(0, transmit.ticket, replies);
    engine.handleLoss(commands.length, transmit.ticket);
  }
  const event: Event | undefined = engine.pollEvent();
  if (event?.type === "run") engine.settleHeld(0, event.job.held, { verdict: "ack" });
  if (event?.type === "answered" && event.error) console.log(event.error.code, event.token);
  const at: number | undefined = engine.pollTimeout();
  engine.handleTimeout(at ?? 0);
  engine.drain(0);
  const flags: [boolean, boolean, number, number] = [engine.isDrained, engine.isIdle, engine.room, engine.held];
  console.log(flags);
  // @ts-expect-error a clock is needed
  new Engine();
  // @ts-expect-error queues are many
  engine.take(0, 1, "q");
  // @ts-expect-error a verdict has a name
  engine.settle(0, 1, "lease", {});
  // @ts-expect-error there is no such verdict
  engine.settle(0, 1, "lease", { verdict: "perhaps" });
  // @ts-expect-error there may be nothing to send
  engine.pollTransmit().commands;
  // @ts-expect-error a reply is no object
  engine.handleReplies(0, 1, [{ result: 1 }]);
  // @ts-expect-error there is no such event
  console.log(event?.type === "ran");
}
