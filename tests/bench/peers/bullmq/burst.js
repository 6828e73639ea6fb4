// A burst by BullMQ: see ../README.md for what it is told and what it says.
import { Queue, Worker } from "bullmq";

const [url, jobs, slots, lead] = process.argv.slice(2);
const connection = { host: new URL(url).hostname, port: Number(new URL(url).port), maxRetriesPerRequest: null };
const total = Number(jobs);
const BATCH = 500;

const queue = new Queue("burst", { connection });
await queue.waitUntilReady();

let count = 0;
let finish;
const finished = new Promise((resolve) => { finish = resolve; });
const worker = new Worker("burst", async () => {}, { connection, concurrency: Number(slots) });
worker.on("completed", () => { count += 1; if (count === total) finish(); });
await worker.waitUntilReady();
console.log("ready");

const begun = Date.now();
const due = begun + Number(lead);
const data = (number) => ({ order: number, text: "x".repeat(70) });
for (let first = 0; first < total; first += BATCH) {
  const length = Math.min(BATCH, total - first);
  const opts = { delay: due - Date.now(), removeOnComplete: true };
  await queue.addBulk(Array.from({ length }, (_, n) => ({ name: "job", data: data(first + n), opts })));
}
const published = Date.now();
console.log(`published ${(published - begun) / 1000} ${due > published}`);
await finished;
console.log(`done ${(Date.now() - due) / 1000}`);
process.exit(0);
