// Reads a push as JSON, { secret, publicKey, headers, body }, and checks it twice: by the reference library, with the
// shared secret, and by Node's own ed25519, with the public key. Then it checks that a changed body is not believed.
import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const { secret, publicKey, headers, body } = JSON.parse(readFileSync(0, "utf8"));
const webhook = new Webhook(secret);
webhook.verify(body, headers);
assert.throws(() => webhook.verify(`${body} `, headers), /No matching signature/);

// What a receiver of ed25519 signatures writes: docs/push.md has it.
function isSigned(body) {
  const key = createPublicKey({
    key: { kty: "OKP", crv: "Ed25519", x: Buffer.from(publicKey.slice("whpk_".length), "base64").toString("base64url") },
    format: "jwk",
  });
  const signed = Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`);
  return headers["webhook-signature"]
    .split(" ")
    .filter((signature) => signature.startsWith("v1a,"))
    .some((signature) => verify(null, signed, key, Buffer.from(signature.slice(4), "base64")));
}
assert(isSigned(body));
assert(!isSigned(`${body} `));
console.log("believed");
