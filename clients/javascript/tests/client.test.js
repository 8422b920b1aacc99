// Every method against a real server, whose address and key are TERCET_URL and TERCET_CLIENT_KEY.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ApiError,
  Client,
  ConflictError,
  ConnectionFailedError,
  decodeVector,
  NotFoundError,
  OverloadedError,
} from "../tercet.js";

const url = process.env.TERCET_URL;
const key = process.env.TERCET_CLIENT_KEY;
const server = { skip: url === undefined && "set TERCET_URL and TERCET_CLIENT_KEY to those of a server" };
const client = new Client(url, { key });
const TEXTS = ["Green tea is brewed with hot water.", "A steam train crosses the bridge."];

function documents(count) {
  return Array.from({ length: count }, (_, n) => ({ id: `d${n}`, text: `${TEXTS[n % 2]} ${n}`, metadata: { year: n } }));
}

async function withCollection(name, work) {
  await client.createCollection(name, { fields: { year: "integer" } });
  try {
    await work(name);
  } finally {
    await client.deleteCollection(name);
  }
}

async function all(iterable) {
  const found = [];
  for await (const one of iterable) found.push(one);
  return found;
}

test("embeddings are typed arrays", server, async () => {
  const { model, embeddings } = await client.embed(TEXTS);
  assert.equal(typeof model, "string");
  assert.equal(embeddings.length, 2);
  const [{ dense, sparse, colbert, tokens, truncated }] = embeddings;
  assert.ok(dense instanceof Float32Array);
  assert.ok(Math.abs(Math.hypot(...dense) - 1) < 1e-4);
  assert.equal(sparse.tokenIds.length, sparse.weights.length);
  assert.equal(colbert.length, tokens - 1);
  assert.equal(truncated, false);
  const plain = await (
    await fetch(`${url}/embed`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
      body: JSON.stringify({ inputs: TEXTS }),
    })
  ).json();
  assert.deepEqual(Array.from(embeddings[1].dense, Math.fround), plain.embeddings[1].dense.map(Math.fround));
  const [only] = (await client.embed(TEXTS[0], { outputs: ["dense"], dimensions: 64 })).embeddings;
  assert.equal(only.dense.length, 64);
  assert.equal(only.colbert, undefined);
});

test("smaller numbers are decoded", server, async () => {
  const plain = (await client.embed(TEXTS, { outputs: ["dense", "colbert"] })).embeddings;
  const shapes = { float16: Uint16Array, int8: Int8Array, binary: Int8Array, ubinary: Uint8Array };
  for (const [asked, Kind] of Object.entries(shapes)) {
    const { dtype, embeddings } = await client.embed(TEXTS, { outputs: ["dense", "colbert"], dtype: asked });
    assert.equal(dtype, asked);
    embeddings.forEach(({ dense, denseScale, colbert, colbertScales }, row) => {
      assert.ok(dense instanceof Kind);
      const pairs = colbert.map((vector, token) => [vector, colbertScales?.[token], plain[row].colbert[token]]);
      for (const [values, scale, expected] of [[dense, denseScale, plain[row].dense], ...pairs]) {
        const decoded = decodeVector(values, dtype, scale);
        assert.equal(decoded.length, expected.length);
        const bits = asked.endsWith("binary");
        decoded.forEach((value, place) => {
          if (bits) assert.equal(value > 0, expected[place] > 0);
          else assert.ok(Math.abs(value - expected[place]) < 4e-3);
        });
        if (bits) assert.ok(Math.abs(Math.hypot(...decoded) - 1) < 1e-4);
      }
    });
  }
  const [pooled] = (await client.embed(TEXTS[0], { outputs: ["colbert"], colbertPool: 2 })).embeddings;
  assert.equal(pooled.colbert.length, Math.ceil(plain[0].colbert.length / 2));
});

test("a float16 is read bit by bit", () => {
  const bits = { 0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x3555: 0.333251953125, 0x0001: 2 ** -24, 0x7bff: 65504 };
  for (const [each, expected] of Object.entries(bits)) {
    assert.equal(decodeVector(new Uint16Array([Number(each)]), "float16")[0], expected);
  }
});

test("documents are written, searched, read and deleted", server, () =>
  withCollection("js-documents", async (name) => {
    assert.equal((await client.putDocuments(name, documents(3))).upserted, 3);
    const { hits } = await client.search(name, "how is tea brewed", { topK: 2, explain: true });
    assert.ok(["d0", "d2"].includes(hits[0].id));
    const { results } = await client.searchMany(name, ["how is tea brewed", { id: "d1" }], { include: [] });
    assert.deepEqual(results[0].hits.slice(0, 2).map((hit) => hit.id), hits.map((hit) => hit.id));
    assert.ok(results[1].hits.every((hit) => hit.id !== "d1" && hit.text === undefined));
    const { score, id } = hits[0];
    const rest = await client.search(name, "how is tea brewed", { searchAfter: { score, id }, topK: 1 });
    assert.equal(rest.hits[0].id, hits[1].id);
    assert.ok("explanation" in hits[0]);
    const late = await client.search(name, "tea", { filter: { gte: { year: 2 } } });
    assert.deepEqual(late.hits.map((hit) => hit.id), ["d2"]);
    assert.deepEqual((await client.document(name, "d1")).metadata, { year: 1 });
    assert.ok("representations" in (await client.document(name, "d1", { representations: true })));
    await client.patchDocument(name, "d1", { year: 1830 });
    await client.patchDocument(name, "d1", { note: null }, { merge: true });
    assert.deepEqual((await all(client.documents(name, { page: 2 }))).map((one) => one.id), ["d0", "d1", "d2"]);
    assert.equal((await all(client.documents(name, { filter: { eq: { year: 1830 } } }))).length, 1);
    const changed = await client.updateDocuments(name, { kind: "x" }, { filter: { gte: { year: 0 } }, merge: true });
    assert.equal(changed.updated, 3);
    assert.deepEqual((await client.document(name, "d1")).metadata, { year: 1830, kind: "x" });
    assert.equal((await client.declareFields(name, { kind: "keyword" })).fields.kind, "keyword");
    const ordered = await all(client.documents(name, { orderBy: "year", descending: true, page: 2 }));
    assert.deepEqual(ordered.map((one) => one.id), ["d1", "d2", "d0"]);
    assert.equal(await client.countDocuments(name), 3);
    assert.equal(await client.countDocuments(name, { eq: { year: 1830 } }), 1);
    const several = await client.getDocuments(name, ["d2", "none"]);
    assert.deepEqual([several.documents.map((one) => one.id), several.missing], [["d2"], ["none"]]);
    assert.equal((await client.deleteDocuments(name, { ids: ["d1", "none"] })).deleted, 1);
    assert.equal((await client.deleteDocuments(name, { filter: { gte: { year: 0 } } })).deleted, 2);
    await assert.rejects(client.document(name, "d1"), NotFoundError);
  }));

test("writes keep to positions and idempotency keys", server, () =>
  withCollection("js-writes", async (name) => {
    const first = await client.putDocuments(name, documents(1), { idempotencyKey: "once" });
    assert.deepEqual(await client.putDocuments(name, documents(1), { idempotencyKey: "once" }), first);
    await client.putDocuments(name, documents(1));
    await assert.rejects(client.putDocuments(name, documents(1), { ifPosition: first.position }), ConflictError);
    await assert.rejects(client.patchDocument(name, "d0", {}, { ifPosition: first.position }), ConflictError);
  }));

test("a partition is searched, counted, changed and deleted alone", server, async () => {
  await client.createCollection("js-tenants", { partitioned: true });
  const tenants = documents(4).map((one, n) => ({ ...one, partition: `t${n % 2}` }));
  await client.putDocuments("js-tenants", tenants);
  const within = { partition: "t1" };
  const { hits } = await client.search("js-tenants", "tea", within);
  assert.deepEqual(hits.map((hit) => [hit.id, hit.partition]).sort(), [["d1", "t1"], ["d3", "t1"]]);
  assert.equal(await client.countDocuments("js-tenants", undefined, within), 2);
  assert.equal((await all(client.documents("js-tenants", within))).length, 2);
  assert.equal((await client.updateDocuments("js-tenants", { year: 1 }, within)).updated, 2);
  assert.equal((await client.deleteDocuments("js-tenants", within)).deleted, 2);
  assert.equal((await client.document("js-tenants", "d0")).partition, "t0");
  await client.deleteCollection("js-tenants");
});

test("bulk upserts report progress and read no further than they send", server, () =>
  withCollection("js-bulk", async (name) => {
    let read = 0;
    const told = [];
    async function* items() {
      for (const one of documents(50)) {
        read += 1;
        yield one;
      }
    }
    const progress = (done) => told.push([done.documents, read]);
    const done = await client.upsert(name, items(), { batch: 5, inFlight: 2, progress });
    assert.equal(done.documents, 50);
    assert.deepEqual(told.map(([count]) => count), [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]);
    assert.ok(told.every(([count, then]) => then <= count + 15));
    assert.equal((await client.collection(name)).documents, 50);
    await assert.rejects(client.upsert(name, [{ id: "", text: "no id" }]), (error) => error.status === 422);
  }));

test("collections, aliases and backups", server, () =>
  withCollection("js-collections", async (name) => {
    await client.putDocuments(name, documents(2));
    assert.ok((await client.collections()).some((one) => one.name === name));
    assert.equal((await client.statistics(name)).documents, 2);
    await client.merge(name);
    await client.putAlias("js-alias", name);
    assert.equal((await client.alias("js-alias")).collection, name);
    assert.ok((await client.aliases()).some((one) => one.alias === "js-alias"));
    await client.deleteAlias("js-alias");
    const { id } = await client.createBackup(name);
    assert.deepEqual((await client.backups(name)).map((one) => one.id), [id]);
    assert.equal((await client.restoreBackup(name, id, { name: "js-restored" })).documents, 2);
    await client.deleteCollection("js-restored");
    assert.equal((await client.restoreBackup(name, id)).documents, 2);
    await client.deleteBackup(name, id);
    await assert.rejects(client.createCollection(name), ConflictError);
    await assert.rejects(client.startJob(name, "missing.jsonl"), ApiError);
  }));

test("lists come page by page", server, () =>
  withCollection("js-lists", async (name) => {
    const names = [0, 1, 2].map((n) => `${name}-${n}`);
    try {
      for (const one of names) {
        await client.createCollection(one);
        await client.putAlias(`of-${one}`, one);
      }
      const after = await client.collections({ limit: 2, after: names[0] });
      assert.deepEqual(after.map((one) => one.name), names.slice(1));
      const each = (await all(client.iterCollections({ page: 1 }))).map((one) => one.name);
      assert.deepEqual(each.filter((one) => names.includes(one)), names);
      assert.deepEqual(await all(client.iterAliases({ page: 2 })), await client.aliases());
      const [second] = await client.aliases({ limit: 1, after: `of-${names[0]}` });
      assert.equal(second.alias, `of-${names[1]}`);
    } finally {
      for (const one of names) {
        await client.deleteAlias(`of-${one}`);
        await client.deleteCollection(one);
      }
    }
    const made = [];
    for (let n = 0; n < 3; n += 1) made.push((await client.createBackup(name)).id);
    made.sort().reverse(); // of one second in order of their other digits
    const [behind, ...others] = await client.backups(name, { limit: 1, after: made[0] });
    assert.deepEqual([behind.id, others], [made[1], []]);
    assert.deepEqual((await all(client.iterBackups(name, { page: 2 }))).map((one) => one.id), made);
    for (const id of made) await client.deleteBackup(name, id);
    assert.deepEqual(await all(client.iterJobs({ page: 1 })), await client.jobs());
    await assert.rejects(client.jobs({ after: "none" }), /no job of this list/);
    await assert.rejects(client.collections({ limit: 0 }), ApiError);
  }));

test("re-ranking, jobs and operations", server, async () => {
  const { results } = await client.rerank("how is tea made", TEXTS, { topK: 1 });
  assert.deepEqual(results.map((one) => one.index), [0]);
  assert.ok(Array.isArray(await client.jobs()));
  await assert.rejects(client.job("none"), NotFoundError);
  await assert.rejects(client.waitForJob("none"), NotFoundError);
  await assert.rejects(client.cancelJob("none"), NotFoundError);
  assert.equal((await client.info()).name, "tercet");
  assert.ok(await client.healthy());
  assert.ok(await client.ready());
  assert.match(await client.metrics(), /tercet_requests_total/);
  await assert.rejects(new Client(url).collections(), (error) => error.status === 401);
});

test("a page of another server changes what it may, also without a body", server, async () => {
  const asPage = (where, init) => fetch(where, { ...init, headers: { ...init.headers, Origin: "http://localhost:3000" } });
  const page = new Client(url, { key, fetch: asPage });
  await page.createCollection("elsewhere");
  const { id } = await page.createBackup("elsewhere");
  await page.deleteBackup("elsewhere", id);
  await page.deleteCollection("elsewhere");
});

function answering(...answers) {
  const asked = [];
  const fetch = async (where, init) => {
    asked.push([where, init]);
    const answer = answers[asked.length - 1];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return [fetch, asked];
}

function overloaded() {
  const error = { type: "overloaded", message: "too much waits", param: null, code: "overloaded" };
  return Response.json({ error }, { status: 429, headers: { "Retry-After": "0" } });
}

test("a busy server is asked again, and no longer than is said", async () => {
  const [fetch, asked] = answering(overloaded(), overloaded(), Response.json({ aliases: [] }));
  assert.deepEqual(await new Client("http://tercet", { fetch }).aliases(), []);
  assert.equal(asked.length, 3);
  const [busy, times] = answering(overloaded(), overloaded(), overloaded());
  await assert.rejects(new Client("http://tercet", { fetch: busy, retries: 2 }).aliases(), OverloadedError);
  assert.equal(times.length, 3);
});

test("a lost write is repeated under its key, and what might happen twice is not", async () => {
  const done = Response.json({ upserted: 1, position: 1, usage: { tokens: 3 } });
  const [fetch, asked] = answering(new TypeError("lost"), done);
  await new Client("http://tercet", { fetch }).putDocuments("c", [{ id: "a", text: "b" }]);
  assert.equal(asked[0][1].body, asked[1][1].body);
  assert.match(asked[0][1].body, /idempotency_key/);
  const [refusing, once] = answering(new TypeError("refused"));
  await assert.rejects(new Client("http://tercet", { fetch: refusing }).createBackup("c"), ConnectionFailedError);
  assert.equal(once.length, 1);
});

test("what is no address is told at once", () => {
  for (const url of ["127.0.0.1:8080", "localhost", "ftp://tercet"]) assert.throws(() => new Client(url), /url is .*; give one such as http/);
  new Client(""); // a page of the server itself
});

test("an id that a URL takes as a step is named, and asks nothing", async () => {
  for (const id of [".", ".."]) {
    await assert.rejects(client.document("articles", id), { name: "RangeError", message: /getDocuments/ });
    await assert.rejects(client.patchDocument("articles", id, {}), RangeError);
  }
});
