// In Cloudflare's runtime. DELAYLINE_WORKERD is where it is.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { queue } from "./setup.mjs";

const workerd = process.env.DELAYLINE_WORKERD;

const app = `
import { DelayQueue } from "./delayline/workerd.js";

let shared;

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    shared ??= new DelayQueue(searchParams.get("queue"), { url: env.URL, token: env.TOKEN });
    if (pathname === "/publish") return Response.json(await shared.publish({ from: "a worker" }));
    const delivered = [];
    const summary = await shared.pump({ handler: (job) => delivered.push(job.payload), forMs: 5_000, stayMs: 0 });
    return Response.json({ delivered, summary });
  },
};
`;

const modules = ["delayline/workerd.js", "delayline/start.js", "delayline/delayline_bg.js", "delayline/delayline_bg.wasm"];
const embedded = modules.map((name) => `(name = "${name}", ${name.endsWith(".js") ? "esModule" : "wasm"} = embed "${name}")`);
const config = `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "app", worker = (
      modules = [(name = "app.js", esModule = embed "app.js"), ${embedded.join(", ")}],
      compatibilityDate = "2026-11-01",
      bindings = [(name = "URL", fromEnvironment = "DELAYLINE_REST_URL"), (name = "TOKEN", fromEnvironment = "DELAYLINE_REST_TOKEN")],
      globalOutbound = "net")),
    (name = "net", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "app")],
);
`;

test("a worker publishes and pumps, and its invocations do not wait for each other", async (t) => {
  if (!workerd) {
    assert.notEqual(process.env.CI, "true", "DELAYLINE_WORKERD is not set");
    t.skip("DELAYLINE_WORKERD is not set: npm install @cloudflare/workerd-linux-64, or the like, has bin/workerd");
    return;
  }
  const directory = mkdtempSync(join(tmpdir(), "delayline-workerd-"));
  t.after(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, "delayline"));
  const from = dirname(fileURLToPath(import.meta.resolve("delayline")));
  for (const name of modules) cpSync(join(from, "..", name), join(directory, name));
  writeFileSync(join(directory, "app.js"), app);
  writeFileSync(join(directory, "config.capnp"), config);
  const child = spawn(workerd, ["serve", "config.capnp", "--control-fd=1"], {
    cwd: directory, stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  const [line] = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", (line) => resolve([line]));
    child.once("exit", (code) => reject(new Error(`workerd ended with ${code}`)));
    child.once("error", reject);
  });
  const { port } = JSON.parse(line);
  const q = queue();
  const get = async (path) => {
    const response = await fetch(`http://127.0.0.1:${port}/${path}?queue=${q.name}`);
    assert.equal(response.status, 200, await response.clone().text());
    return response.json();
  };
  const published = await Promise.all(Array.from({ length: 20 }, () => get("publish")));
  assert.equal(new Set(published.map(({ id }) => id)).size, 20);
  assert.equal((await q.stats()).sizes.ready, 20);
  const { delivered, summary } = await get("pump");
  assert.deepEqual(delivered, Array.from({ length: 20 }, () => ({ from: "a worker" })));
  assert.deepEqual([summary.acked, summary.trouble], [20, null]);
});
