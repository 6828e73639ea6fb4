// In a browser. DELAYLINE_BROWSER is a Chromium or Chrome.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { queue, token, url } from "./setup.mjs";

const browser = process.env.DELAYLINE_BROWSER;
const types = { ".js": "text/javascript", ".wasm": "application/wasm" };

const page = (name) => `<!doctype html><title>delayline</title><script type="module">
const tell = (body) => fetch("/told", { method: "POST", body });
try {
  const { DelayQueue } = await import("/package/web.js");
  const q = new DelayQueue(${JSON.stringify(name)}, { url: location.origin, token: ${JSON.stringify(token)} });
  await q.publish({ from: "a browser" }, { id: "b" });
  const [job] = await q.take({ waitMs: 5000 });
  await tell([job.payload.from, await q.ack(job.lease)].join(": "));
} catch (error) {
  await tell("failed: " + error);
}
</script>`;

test("a page publishes, takes and acknowledges", { timeout: 60_000 }, async (t) => {
  if (!browser) {
    t.skip("DELAYLINE_BROWSER is not set: it is where a Chromium or Chrome is");
    return;
  }
  const q = queue();
  const from = dirname(fileURLToPath(import.meta.resolve("delayline")));
  let told;
  const telling = new Promise((resolve) => (told = resolve));
  const server = createServer(async (request, response) => {
    if (request.url === "/") {
      response.setHeader("content-type", "text/html").end(page(q.name));
    } else if (request.url === "/told") {
      told(Buffer.concat(await request.toArray()).toString());
      response.end();
    } else if (request.url === "/pipeline") {
      const chunks = await request.toArray();
      const headers = new Headers(request.headers);
      ["host", "connection", "content-length"].forEach((name) => headers.delete(name));
      const answer = await fetch(`${url}/pipeline`, { method: "POST", headers, body: Buffer.concat(chunks) });
      response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
    } else {
      const file = join(from, request.url.replace("/package/", ""));
      const type = types[file.slice(file.lastIndexOf("."))];
      const found = type ? await readFile(file).catch(() => undefined) : undefined;
      response.writeHead(found ? 200 : 404, { "content-type": type ?? "text/plain" }).end(found);
    }
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const profile = mkdtempSync(join(tmpdir(), "delayline-browser-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`];
  const child = spawn(browser, [...flags, `http://127.0.0.1:${server.address().port}/`], { stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
  t.after(async () => {
    child.kill();
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  const failed = ended.then((why) => `the browser ended: ${why}`);
  assert.equal(await Promise.race([telling, failed]), "a browser: ok");
});
