// Hands each message that is sent to the worker's consumer, as workerd's binding of a queue sends it.
export default {
  async fetch(request, env, context) {
    if (request.method === "POST") {
      const batch = new URL(request.url).pathname === "/batch" ? await several(request) : [await one(request)];
      context.waitUntil(env.APP.queue(env.NAME, batch));
    }
    return Response.json({ metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } });
  },
};

async function one(request) {
  return message(request.headers.get("X-Msg-Fmt"), await request.arrayBuffer());
}

async function several(request) {
  const { messages } = await request.json();
  return messages.map(({ body, contentType }) =>
    message(contentType, Uint8Array.from(atob(body), (byte) => byte.charCodeAt(0)).buffer),
  );
}

function message(format, serialized) {
  const head = { id: crypto.randomUUID(), timestamp: new Date(), attempts: 1 };
  switch (format) {
    case "json":
      return { ...head, body: JSON.parse(new TextDecoder().decode(serialized)) };
    case "text":
      return { ...head, body: new TextDecoder().decode(serialized) };
    case "bytes":
      return { ...head, body: serialized };
    default:
      return { ...head, serializedBody: serialized };
  }
}
