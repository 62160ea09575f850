// What a chat costs where the service keeps prompts, from the bodies of its requests. Pure: bodies in, units of the
// price of one input token out. Rules of the services:
//
//   Anthropic  A request is a row of blocks: tools, system, messages. What a marked block ends (`cache_control`) is written
//              at 1.25 of the price. A later request reads the longest part written before that ends at one of its marks or
//              at most 20 blocks before one, at 0.1. At least 1024 tokens, for five minutes after the last reading.
//   OpenAI     A request reads the longest beginning it shares with an earlier one of the same `prompt_cache_key`, in steps
//              of 128 tokens from 1024 on, at 0.1. Writing costs nothing more. With another key it is sent to another
//              machine, and reads nothing.
//
// A token is four bytes. Turns follow within the life of the cache; answers are not counted.
const tokens = (text) => Buffer.byteLength(text) / 4;
const READ = 0.1;
const WRITE = 1.25;
const LOOKBACK = 20;
const LEAST = 1024;

/** The blocks of a request to Anthropic: text, and whether it is marked. */
function blocks(body) {
  const block = ({ cache_control, ...rest }) => ({ text: JSON.stringify(rest), marked: Boolean(cache_control) });
  const list = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []));
  const said = body.messages.flatMap((message) => list(message.content).map((c) => ({ role: message.role, ...c })));
  return [...(body.tools ?? []), ...list(body.system), ...said].map(block);
}

/** What requests to Anthropic cost, each a row of blocks. */
export function anthropic(requests) {
  const written = new Set();
  let cost = 0;
  for (const request of requests) {
    const ends = [];
    let text = "";
    for (const block of request) ends.push((text += block.text));
    const marks = request.flatMap((block, at) => (block.marked && tokens(ends[at]) >= LEAST ? [at] : []));
    const near = marks.flatMap((mark) => Array.from({ length: LOOKBACK + 1 }, (_, back) => mark - back));
    const read = Math.max(0, ...near.filter((at) => at >= 0 && written.has(ends[at])).map((at) => tokens(ends[at])));
    const kept = Math.max(read, ...marks.map((at) => tokens(ends[at])));
    marks.forEach((at) => written.add(ends[at]));
    cost += READ * read + WRITE * (kept - read) + (tokens(text) - kept);
  }
  return cost;
}

/** What requests to OpenAI cost, each a text and a key. */
export function openai(requests) {
  const before = new Map();
  let cost = 0;
  for (const { text, key } of requests) {
    const bytes = Buffer.from(text);
    const shared = (other) => {
      let at = 0;
      while (at < bytes.length && bytes[at] === other[at]) at += 1;
      return Math.floor(at / 4 / 128) * 128;
    };
    const read = Math.max(0, ...(before.get(key) ?? []).map(shared).filter((n) => n >= LEAST));
    before.set(key, [...(before.get(key) ?? []), bytes]);
    cost += READ * read + (bytes.length / 4 - read);
  }
  return cost;
}

/** Costs of these requests, of the same turns in one resumed session, and of the same without any cache. */
export function compare(agent, bodies, answer) {
  if (agent === "claude") {
    const fresh = bodies.map(blocks);
    // Where the prompt of the user begins and ends; what follows it is repeated in every request.
    const first = (body) => blocks({ ...body, messages: [] });
    const growing = [];
    const resumed = bodies.map((body, at) => {
      const own = blocks({ messages: body.messages.filter((m) => m.role === "user").slice(0, 1) });
      const before = at === 0 ? 0 : blocks({ messages: bodies[at - 1].messages.filter((m) => m.role === "user").slice(0, 1) }).length;
      // What is new since the turn before, as one message; the answer stands before it.
      const news = own.slice(Math.max(0, before - 1)).map((block) => ({ ...block, marked: false }));
      growing.push(...(at === 0 ? own.map((block) => ({ ...block, marked: false })) : news));
      return [...first(body), ...growing.map((block, i) => ({ ...block, marked: i === growing.length - 1 }))];
    });
    const plain = fresh.reduce((sum, request) => sum + request.reduce((n, block) => n + tokens(block.text), 0), 0);
    return { fresh: anthropic(fresh), resumed: anthropic(resumed), plain };
  }
  // Ids of messages and turns are no part of what a model reads.
  const text = (input) => input.map((item) => JSON.stringify([item.role, item.content?.map((c) => c.text)])).join("");
  const head = (body) => JSON.stringify(body.tools ?? []) + (body.instructions ?? "");
  const fresh = bodies.map((body) => ({ text: head(body) + text(body.input), key: body.prompt_cache_key }));
  let grown = "";
  const resumed = bodies.map((body, at) => {
    const own = body.input.at(-1).content;
    const before = at === 0 ? 0 : bodies[at - 1].input.at(-1).content.length - 1;
    grown += text(at === 0 ? body.input : [{ role: "user", content: own.slice(Math.max(0, before)) }]);
    return { text: head(body) + grown, key: "one" };
  });
  const plain = fresh.reduce((sum, request) => sum + tokens(request.text), 0);
  return { fresh: openai(fresh), resumed: openai(resumed), plain };
}
