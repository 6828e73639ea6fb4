// What @upstash/redis expects of Upstash, asked of the endpoint at UPSTASH_REDIS_REST_URL.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Redis } from '@upstash/redis';

const url = process.env.UPSTASH_REDIS_REST_URL;
const token = process.env.UPSTASH_REDIS_REST_TOKEN;
const client = (options) => new Redis({ url, token, retry: false, enableTelemetry: false, ...options });

const redis = client({ enableAutoPipelining: false });
const raw = client({ enableAutoPipelining: false, automaticDeserialization: false });
const plain = client({ enableAutoPipelining: false, responseEncoding: false });

const ask = (path, options = {}) => {
  const headers = { authorization: `Bearer ${token}`, ...options.headers };
  return fetch(new URL(path, url), { ...options, headers });
};

before(() => redis.flushall());

test('unicode, in base64 and plain', async () => {
  const text = 'héllo 日本 🎉';
  for (const each of [redis, raw, plain]) {
    assert.equal(await each.set('unicode', text), 'OK');
    assert.equal(await each.get('unicode'), text);
  }
});

test('JSON values', async () => {
  const value = { a: [1, 'b', null], deep: { 'ключ': true } };
  await redis.set('json', value);
  assert.deepEqual(await redis.get('json'), value);
  assert.deepEqual(await plain.get('json'), value);
  assert.equal(await raw.get('json'), JSON.stringify(value));
});

test('a value that is OK, alone and within arrays', async () => {
  await redis.set('ok', 'OK');
  await redis.rpush('oks', 'OK', 'T0s=', 'x');
  for (const each of [redis, raw, plain]) {
    assert.equal(await each.get('ok'), 'OK');
    assert.deepEqual(await each.lrange('oks', 0, -1), ['OK', 'T0s=', 'x']);
    assert.deepEqual(await each.mget('ok', 'none'), ['OK', null]);
  }
});

test('nil, numbers and simple strings', async () => {
  assert.equal(await redis.get('none'), null);
  assert.equal(await redis.incrby('counter', 41), 41);
  assert.equal(await redis.decr('counter'), 40);
  assert.equal(await redis.ping(), 'PONG');
  assert.equal(await redis.type('counter'), 'string');
});

test('integers that numbers cannot hold', async () => {
  await raw.set('large', '9007199254740993');
  assert.equal(await raw.incr('large'), '9007199254740994');
});

test('a pipeline', async () => {
  const results = await redis.pipeline().set('p', 'a').get('p').incr('pn').get('none').exec();
  assert.deepEqual(results, ['OK', 'a', 1, null]);
});

test('a pipeline with an error', async () => {
  const pipeline = () => redis.pipeline().set('p', 'a').incr('p').get('p');
  await assert.rejects(pipeline().exec(), /Command 2 \[ incr \] failed: ERR value is not an integer/);
  const [set, incr, get] = await pipeline().exec({ keepErrors: true });
  assert.deepEqual([set.result, get.result], ['OK', 'a']);
  assert.match(incr.error, /^ERR value is not an integer/);
});

test('commands that the client puts together', async () => {
  const together = client({ enableAutoPipelining: true });
  const [a, b, c] = await Promise.all([together.set('t', 1), together.incr('t'), together.get('t')]);
  assert.deepEqual([a, b, c], ['OK', 2, 2]);
});

test('a transaction, and one that is discarded', async () => {
  assert.deepEqual(await redis.multi().set('m', 'a').incr('mn').get('m').exec(), ['OK', 1, 'a']);
  const discarded = await ask('/multi-exec', { method: 'POST', body: '[["SET","m","b"],["GET"]]' });
  assert.equal(discarded.status, 400);
  assert.match((await discarded.json()).error, /^ERR wrong number of arguments/);
  assert.equal(await redis.get('m'), 'a');
});

test('scripts', async () => {
  assert.match(String((await raw.eval("return redis.call('TIME')", [], []))[0]), /^\d{10,}$/);
  const nested = "return {1, 'a', {2, false, redis.status_reply('FINE')}, redis.status_reply('OK')}";
  for (const each of [redis, raw, plain]) {
    assert.deepEqual(await each.eval(nested, [], []), [1, 'a', [2, null, 'FINE'], 'OK']);
  }
  assert.equal(await redis.eval('return false', [], []), null);
  assert.equal(await redis.eval("return redis.status_reply('FINE')", [], []), 'FINE');
  assert.equal(await redis.eval("return redis.status_reply('OK')", [], []), 'OK');
  await assert.rejects(redis.eval("return redis.error_reply('MINE is wrong')", [], []), /MINE is wrong/);
});

test('a script that is not known yet', async () => {
  const source = "return redis.call('SET', KEYS[1], ARGV[1])";
  const script = redis.createScript(source);
  assert.equal(await script.exec(['scripted'], ['v']), 'OK');
  const [known] = await redis.scriptExists(await redis.scriptLoad(source));
  assert.equal(known, 1);
  await redis.scriptFlush();
  await assert.rejects(redis.evalsha('f'.repeat(40), [], []), /NOSCRIPT/);
  assert.equal(await script.exec(['scripted'], ['w']), 'OK');
  assert.equal(await redis.get('scripted'), 'w');
});

test('sorted sets and hashes', async () => {
  await redis.zadd('z', { score: 1.5, member: 'a' }, { score: -2, member: 'b' });
  assert.equal(await redis.zscore('z', 'a'), 1.5);
  assert.deepEqual(await redis.zrange('z', 0, -1, { withScores: true }), ['b', -2, 'a', 1.5]);
  await redis.hset('h', { f: 1, g: 'x' });
  assert.deepEqual(await redis.hgetall('h'), { f: 1, g: 'x' });
});

test('errors of commands', async () => {
  await redis.rpush('list', 'a');
  await assert.rejects(redis.get('list'), /WRONGTYPE Operation against a key/);
  await assert.rejects(redis.exec(['BLPOP', 'list', 0]), /Command is not available: 'BLPOP'/);
});

test('a token that is wrong', async () => {
  const stranger = new Redis({ url, token: 'wrong', retry: false, enableTelemetry: false });
  await assert.rejects(stranger.get('k'), /WRONGPASS/);
  assert.equal((await fetch(new URL('/get/k', url))).status, 401);
});

test('methods and bodies that are wrong', async () => {
  assert.equal((await ask('/get/k', { method: 'DELETE' })).status, 405);
  const unread = await ask('/', { method: 'POST', body: '{' });
  assert.equal(unread.status, 400);
  assert.match((await unread.json()).error, /^ERR /);
});

test('commands in the path', async () => {
  const set = await fetch(new URL(`/set/path/a%20b?EX=100&_token=${token}`, url));
  assert.deepEqual(await set.json(), { result: 'OK' });
  assert.equal(await redis.get('path'), 'a b');
  assert.ok((await redis.ttl('path')) > 90);
  const body = await ask('/set/path?EX=100', { method: 'POST', body: 'from the body' });
  assert.deepEqual(await body.json(), { result: 'OK' });
  assert.equal(await redis.get('path'), 'from the body');
});

test('bytes, in by the body and out in base64', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
  const headers = { 'content-type': 'application/octet-stream', 'upstash-encoding': 'base64' };
  const set = await ask('/set/bytes', { method: 'POST', body: bytes, headers });
  assert.deepEqual(await set.json(), { result: 'OK' });
  const { result } = await (await ask('/get/bytes', { headers })).json();
  assert.deepEqual(Buffer.from(result, 'base64'), bytes);
  const echo = await ask('/eval/return%20ARGV%5B1%5D/0', { method: 'POST', body: bytes, headers });
  assert.equal((await echo.json()).result, result);
  const lossy = await (await ask('/get/bytes')).json();
  assert.equal(lossy.result, bytes.toString('utf8'));
});

test('the token to sync by is passed on', async () => {
  const synced = client({ enableAutoPipelining: false, readYourWrites: true });
  await synced.set('s', 1);
  assert.equal(await synced.get('s'), 1);
  const answer = await ask('/ping', { headers: { 'upstash-sync-token': '' } });
  assert.ok(answer.headers.get('upstash-sync-token'));
});

test('tokens to sync by grow with each answer', async () => {
  const tokens = [];
  for (const sent of ['', 'of another endpoint']) {
    const { headers } = await ask('/ping', { headers: { 'upstash-sync-token': sent } });
    tokens.push(BigInt(headers.get('upstash-sync-token')));
  }
  assert.ok(tokens[1] > tokens[0]);
});

test('answers in RESP2', async () => {
  const headers = { 'upstash-response-format': 'resp2' };
  const answer = await ask('/pipeline', { method: 'POST', body: '[["SET","r","a"],["GET","r"],["INCR","r"]]', headers });
  assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
  assert.match(await answer.text(), /^\+OK\r\n\$1\r\na\r\n-ERR value is not an integer.*\r\n$/);
});

// The next event of a subscriber, or of a type of its own.
const event = (subscriber, type) => new Promise((resolve) => subscriber.on(type, resolve));
const heard = async (channel, count) => {
  while ((await raw.exec(['PUBSUB', 'NUMSUB', channel]))[1] !== count) await new Promise(setImmediate);
};

test('messages of a channel', { timeout: 20_000 }, async () => {
  const subscriber = redis.subscribe('chat');
  assert.equal(await event(subscriber, 'subscribe'), 1);
  const messages = [];
  const all = new Promise((resolve) => {
    subscriber.on('message', ({ channel, message }) => {
      messages.push([channel, message]);
      if (message === 'last') resolve();
    });
  });
  const own = event(subscriber, 'message:chat');
  const sent = [{ a: [1, 'b'] }, 'a, b', 7, 'héllo 日本 🎉', 'last'];
  for (const message of sent) assert.equal(await redis.publish('chat', message), 1);
  await all;
  assert.deepEqual(messages, sent.map((message) => ['chat', message]));
  assert.deepEqual(await own, { channel: 'chat', message: sent[0] });
  await subscriber.unsubscribe();
  await heard('chat', 0);
});

test('messages of channels alike, and of several', { timeout: 20_000 }, async () => {
  const alike = redis.psubscribe('user:*');
  assert.equal(await event(alike, 'psubscribe'), 1);
  const several = redis.subscribe(['user:1', 'user:2']);
  await Promise.all([heard('user:1', 1), heard('user:2', 1)]);
  const [message, own] = [event(alike, 'pmessage'), event(several, 'message')];
  assert.equal(await redis.publish('user:2', { n: 2 }), 2);
  assert.deepEqual(await message, { pattern: 'user:*', channel: 'user:2', message: { n: 2 } });
  assert.deepEqual(await own, { channel: 'user:2', message: { n: 2 } });
  assert.deepEqual(several.getSubscribedChannels(), ['user:1', 'user:2']);
  await several.unsubscribe(['user:2']);
  await heard('user:2', 0);
  await Promise.all([alike.unsubscribe(), several.unsubscribe()]);
  await heard('user:1', 0);
});

test('a subscription that Redis ends is an error', { timeout: 20_000 }, async () => {
  const subscriber = redis.subscribe('doomed');
  await event(subscriber, 'subscribe');
  const error = event(subscriber, 'error');
  process.kill(Number(await redis.eval("return redis.call('INFO', 'server'):match('process_id:(%d+)')", [], [])), 'SIGKILL');
  const { channel, message } = await error;
  assert.equal(channel, 'doomed');
  assert.match(message, /^ERR the connection to .* subscribe again$/);
});
