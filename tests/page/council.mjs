// A council for pictures: five members that answer, review, compare and vote as the stages of a deliberation ask, by a
// service on loopback in the form of OpenAI's Chat Completions. Answers come word by word.

import { once } from "node:events";
import http from "node:http";

export const QUESTION = "How should the shop hand its orders to the warehouse?";
export const LIVE = "What should we do first?";

/** What each member says: the answer, its name in a vote, and what it thinks of the others. */
const MEMBERS = {
  ann: {
    group: "queue",
    answer: `**Put a queue between them.** The shop writes an order and goes on; the warehouse takes it when it can.

- The shop keeps selling while the warehouse is down.
- A peak becomes a longer queue, not a timeout.
- Orders must carry an id, since a queue may deliver one twice:

\`\`\`sql
INSERT INTO orders (id, body) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING;
\`\`\`

Confidence: 0.8`,
    weakness: "does not say who operates the queue",
    reason: "The shop must sell while the warehouse is down.",
  },
  ben: {
    group: "call",
    answer: `**Call the warehouse directly, with a timeout and retries.** Two services and a few hundred orders a day need no broker.

1. One HTTP call is easy to follow in a log.
2. The customer learns at once whether the item is there.
3. A queue can be added later, behind the same function.

Confidence: 0.7`,
    weakness: "loses orders if the shop stops between two retries",
    reason: "A customer should learn at once whether the item is there.",
  },
  cat: {
    group: "queue",
    answer: `**A queue.** The two systems change and fail at different times, so they should not wait for each other. What matters is that consuming twice does no harm: give each order an id and keep the ids that were handled.

Confidence: 0.75`,
    weakness: "the customer learns of a missing item too late",
    reason: "They fail at different times.",
  },
  dee: {
    group: "outbox",
    answer: `**Write orders to an outbox table in the shop's database**, in the same transaction, and let a small job deliver them. That is a queue without another server, and no order is lost between two systems.

Confidence: 0.6`,
    weakness: "polling a table is slow above a thousand orders a second",
    reason: "No further server, and nothing is lost.",
  },
  eve: {
    group: "call",
    answer: `**Direct calls.** The shop has to ask the warehouse for stock anyway. One way of talking is easier to run than two.

Confidence: 0.55`,
    weakness: "assumes that the warehouse always answers within a second",
    reason: "The shop asks for stock anyway.",
  },
};
/** The groups in the order in which each prefers them. */
const TASTE = { queue: ["queue", "outbox", "call"], call: ["call", "outbox", "queue"], outbox: ["outbox", "queue", "call"] };
const CLAIMS = [
  { claim: "Each order needs an id, so that handling it twice does no harm.", says: ["queue"], denies: [] },
  { claim: "The shop must go on selling while the warehouse is down.", says: ["queue", "outbox"], denies: ["call"] },
  { claim: "A broker is one more server to operate.", says: ["call", "outbox"], denies: [] },
  { claim: "No order may be lost between the two systems.", says: ["queue", "outbox", "call"], denies: [] },
  { claim: "The customer should learn of a missing item at once.", says: ["call"], denies: ["queue"] },
];
const CONCLUSION = {
  recommendation: "Put a queue between the shop and the warehouse, and give each order an id that the warehouse remembers.",
  consensus: "An order must never be lost, and handling one twice must do no harm.",
  support: "The shop keeps selling while the warehouse is down, and a peak only makes the queue longer.",
  dissent: "ben and eve would call the warehouse directly, so that customers learn of missing items at once.",
};
const FIRST = {
  ann: "Agree on the **id of an order** first. Everything else, the queue as well as the direct call, depends on it: without an id, nobody can tell a repeated order from a second one. It takes an afternoon, and no server.",
  ben: "Measure. Count how often the warehouse was unreachable last month, and how many orders that touched. If it was twice, a retry is enough:\n\n```sh\ngrep -c 'warehouse: timeout' shop.log\n```\n\nThen decide.",
  cat: "Write down what happens to an order when the warehouse is down for an hour. Today nobody knows. The answer shows what has to be kept, where, and for how long.",
  dee: "Add the outbox table. It is one migration, it changes nothing for the customer, and it is the first half of each of the other ways.",
  eve: "Ask the warehouse people what they need. They may want a list every ten minutes rather than single orders.",
};

/** The labels of a prompt, and the member whose answer each has. */
function labelled(prompt) {
  const blocks = [...prompt.matchAll(/<<(\w+) Answer (\w+)[^\n]*\n([\s\S]*?)\n\1>>/g)];
  return blocks.map(([, , label, text]) => ({ label, author: authorOf(text) }));
}
function authorOf(text) {
  const start = (answer) => answer.replace(/[*`]/g, "").slice(0, 12);
  const plain = text.replace(/[*`]/g, "");
  return Object.keys(MEMBERS).find((name) => plain.includes(start(MEMBERS[name].answer))) ?? "ann";
}

/** What a member replies to a request. */
function reply(name, body) {
  const me = MEMBERS[name];
  const prompt = body.messages.at(-1).content;
  const fields = body.response_format?.json_schema?.schema?.properties;
  const taste = TASTE[me.group];
  if (!fields) return prompt.includes(LIVE) ? FIRST[name] : me.answer;
  const all = labelled(prompt);
  const labels = (groups) => all.filter(({ author }) => groups.includes(MEMBERS[author].group)).map(({ label }) => label);
  if (fields.groups) {
    const groups = Object.keys(TASTE).map((group) => labels([group])).filter((group) => group.length > 0);
    const claims = CLAIMS.map(({ claim, says, denies }) => ({ claim, says: labels(says), denies: labels(denies) }));
    return JSON.stringify({ groups, ...(fields.claims ? { claims, missing: ["How long an order may wait"] } : {}) });
  }
  if (fields.recommendation) return JSON.stringify({ ...CONCLUSION, cites: fields.cites.items.enum.slice(0, fields.cites.maxItems) });
  const byTaste = [...all].sort((a, b) => taste.indexOf(MEMBERS[a.author].group) - taste.indexOf(MEMBERS[b.author].group));
  const ranking = byTaste.map(({ label }) => label);
  const values = {
    reason: me.reason,
    confidence: Number(me.answer.match(/Confidence: ([\d.]+)/)[1]),
    ranking,
    choice: ranking[0],
    approved: ranking.slice(0, 2),
    answer: ranking[0],
  };
  for (const [at, { label, author }] of byTaste.entries()) values[label] = { rating: 9 - 2 * at, weakness: MEMBERS[author].weakness };
  return JSON.stringify(Object.fromEntries(Object.keys(fields).map((field) => [field, values[field] ?? ""])));
}

/** Starts the service. `pace` is the time of a word in ms. Returns its address and what stops it. */
export async function service(pace) {
  const server = http.createServer((request, response) => {
    let raw = "";
    request.on("data", (piece) => (raw += piece));
    request.on("end", async () => {
      const body = JSON.parse(raw);
      const text = reply(body.model.split("-")[0], body);
      const send = (chunk) => response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: body.model, ...chunk })}\n\n`);
      response.setHeader("content-type", "text/event-stream");
      for (const word of text.match(/\s*\S+\s*/g)) {
        send({ choices: [{ index: 0, delta: { content: word }, finish_reason: null }] });
        const wait = pace(body);
        if (wait > 0) await new Promise((done) => setTimeout(done, wait));
      }
      send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
      send({ choices: [], usage: { prompt_tokens: Math.ceil(raw.length / 4), completion_tokens: Math.ceil(text.length / 4) } });
      response.end("data: [DONE]\n\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => (server.close(), server.closeAllConnections()) };
}

/** The configuration of the council. */
export function config(url) {
  const models = { ann: "ann-large", ben: "ben-4.1", cat: "cat-pro", dee: "dee-mini", eve: "eve-2" };
  const prices = Object.fromEntries(Object.values(models).map((model, at) => [model, { input: 1 + at, output: 5 + 2 * at }]));
  return {
    providers: { example: { wire: "openai", base_url: url, prices } },
    agents: Object.fromEntries(Object.entries(models).map(([name, model]) => [name, { backend: "example", model }])),
    council: { members: Object.keys(models), auto_messages: 0, conclude: false },
  };
}
