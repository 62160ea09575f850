// The AI SDK (npm `ai`) with its providers for OpenAI and Anthropic against `kd serve`: OPENAI_BASE_URL and OPENAI_API_KEY
// say where members play scripts, TOOLS_URL where one acts. Each provider with its defaults: two turns, whole and streamed,
// and an agent's turns with a tool until it says that all are done.
import assert from "node:assert";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { OPENAI_BASE_URL: url, TOOLS_URL: toolsUrl, OPENAI_API_KEY: apiKey } = process.env;
const TURNS = 50;
const ANSWER = "Spaces. They look the same everywhere.";

function passed(name) {
  console.log(`passed  ai: ${name}`);
}
/** The ways to ask: a name, and a model at an address. */
const WAYS = [
  ["openai", (baseURL, model) => createOpenAI({ baseURL, apiKey })(model)],
  ["openai chat", (baseURL, model) => createOpenAI({ baseURL, apiKey }).chat(model)],
  ["anthropic", (baseURL, model) => createAnthropic({ baseURL, apiKey })(model)],
];
/** A call that is whole, and one that is streamed, with the same answer. */
const CALLS = [
  ["whole", generateText],
  [
    "streamed",
    async (wish) => {
      const failed = [];
      const stream = streamText({ ...wish, onError: ({ error }) => failed.push(error) });
      let text = "";
      for await (const piece of stream.textStream) text += piece;
      if (failed.length > 0) throw failed[0];
      const [steps, response] = await Promise.all([stream.steps, stream.response]);
      assert.equal(text, steps.map((step) => step.text).join(""));
      return { text: steps.at(-1).text, steps, response };
    },
  ],
];

for (const [name, model] of WAYS) {
  for (const [how, call] of CALLS) {
    const messages = [{ role: "user", content: "Tabs or spaces?" }];
    const first = await call({ model: model(url, "kd/ask:ann"), messages, maxOutputTokens: 1000, maxRetries: 0 });
    assert.equal(first.text, ANSWER);
    messages.push(...first.response.messages, { role: "user", content: "And in Makefiles?" });
    const second = await call({ model: model(url, "kd/ask:ann"), messages, maxOutputTokens: 1000, maxRetries: 0 });
    assert.equal(second.text, ANSWER);
    passed(`${name}, ${how}: two turns`);

    let runs = 0;
    const run = tool({
      description: "Runs a command.",
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }) => {
        runs += 1;
        return command.includes("exit 3") ? "Exit code: 3" : `Exit code: 0\n${runs}`;
      },
    });
    const done = await call({ model: model(toolsUrl, "kd/ask"), prompt: "Commit fifty times.", tools: { run }, stopWhen: stepCountIs(2 * TURNS), maxOutputTokens: 1000, maxRetries: 0 });
    assert.equal(done.text, "All turns are done.");
    assert.equal(runs, TURNS);
    assert.equal(done.steps.length, TURNS + 1);
    passed(`${name}, ${how}: ${TURNS} turns with a tool`);
  }
}
