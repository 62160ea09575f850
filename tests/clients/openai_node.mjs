// The official client for Node.js against `kd serve`: OPENAI_BASE_URL and OPENAI_API_KEY say where.
import assert from "node:assert";
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 });
const messages = [{ role: "user", content: "Tabs or spaces?" }];

function passed(name) {
  console.log(`passed  openai-node: ${name}`);
}

const names = [];
for await (const model of client.models.list()) names.push(model.id);
assert.deepEqual(names.slice(0, 3), ["kd/ask", "kd/think", "kd/deliberate"]);
assert.ok(names.includes("kd/diverse"));
passed("models");

const whole = await client.chat.completions.create({ model: "kd/ask:ann", messages });
assert.equal(whole.choices[0].message.content, "Spaces. They look the same everywhere.");
passed("an answer");

const runner = client.chat.completions.stream({ model: "kd/ask:ann", messages });
let pieces = "";
runner.on("content", (piece) => (pieces += piece));
const last = await runner.finalChatCompletion();
assert.equal(pieces, last.choices[0].message.content);
passed("a stream");

await assert.rejects(client.chat.completions.create({ model: "gpt-9", messages }), OpenAI.NotFoundError);
passed("an unknown model");
