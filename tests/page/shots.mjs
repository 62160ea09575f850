// The pictures. See `shots`.

import { chromium } from "playwright-core";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { LIVE, QUESTION, config, service } from "./council.mjs";

const [home, shots] = process.argv.slice(2);
const { KD: kd, CHROMIUM } = process.env;
const cwd = path.join(home, "shop");
const token = "0123456789abcdef0123456789abcdef";
const SIZES = { phone: { width: 390, height: 844 }, laptop: { width: 1280, height: 800 }, wide: { width: 1920, height: 1080 } };
const SECTIONS = ["said", "decided", "differ", "sure", "record"];

// A question in a growing thread is answered slowly; nothing else waits.
const fake = await service((body) => (!body.response_format && body.messages.at(-1).content.includes(LIVE) ? 350 : 0));
writeFileSync(path.join(home, ".config/kd/config.json"), JSON.stringify(config(fake.url)));
// The service runs in this process, which must not wait for the program.
const run = async (...args) => promisify(execFile)(kd, args, { cwd });
await run("deliberate", "-q", "--seed", "7", QUESTION);
await run("fork", "--before", "3");
await run("forum", "post", "Which broker?", "We need **one** that the shop can operate.");
await run("forum", "reply", "1", "None at all.", "--as", "eve");
await run("forum", "role", "king", "voter", "so that I can vote");
await run("forum", "propose", "text", "No broker this year", "--reason", "Nobody can operate it.");
await run("forum", "hide", "2", "off the point");
// A cycle that has ended, and one in which an agent has the turn for as long as the pictures take.
const AGENTS = {
  ada: "The outbox table is **half of each** of the other ways: begin there, and choose the broker when it hurts.",
  bo: "Has anybody asked the warehouse people?",
  cy: "I counted: twice last month, 14 orders.",
};
const playing = (name, wait) => {
  const calls = [{ tool: "reply_to_thread", thread_id: 1, body: AGENTS[name] }, { tool: "finish", did: "reply_to_thread" }];
  const script = path.join(home, `${name}.json`);
  writeFileSync(script, JSON.stringify({ runs: calls.map((call, at) => [...(at === 0 ? [{ sleep_ms: wait }] : []), { text: JSON.stringify(call) }]) }));
  return script;
};
const agents = path.join(cwd, ".kd/forum/agents");
mkdirSync(agents, { recursive: true });
for (const name of Object.keys(AGENTS)) writeFileSync(path.join(agents, `${name}.yaml`), `name: ${name}\nbackend: scripted\nmodel: ${playing(name, 0)}\nsystem_prompt: You are ${name}.\n`);
await run("trust", "--yes");
await run("forum", "run-once", "--seed", "11");
playing("bo", 3_600_000);
const cycle = spawn(kd, ["forum", "run-once", "--seed", "3"], { cwd, stdio: "ignore" });
const server = spawn(kd, ["serve", "--page", "--listen", "127.0.0.1:0"], { cwd, env: { ...process.env, KD_SERVE_TOKEN: token }, stdio: ["ignore", "pipe", "inherit"] });
const [first] = await once(server.stdout, "data");
const base = String(first).split("\n")[0].trim();
const post = async (to, body) => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(base + to, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
};
const headers = { authorization: `Bearer ${token}` };
const { threads } = await (await fetch(`${base}page/threads`, { headers })).json();
const decided = threads.find(({ fork }) => !fork).id;

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const taken = [];
async function shot(page, name) {
  await page.screenshot({ path: path.join(shots, `${name}.png`) });
  taken.push(name);
}
for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce", hasTouch: size === "phone" });
    const page = await context.newPage();
    await page.goto(`${base}#token=${token}`);
    await page.waitForSelector("#list li");
    await shot(page, `${size}-${colorScheme}-new`);
    await page.goto(`${base}?thread=${decided}`);
    await page.waitForSelector("#record");
    await page.waitForTimeout(200);
    await shot(page, `${size}-${colorScheme}-head`);
    const cell = page.locator("#differ td a[href*='s']").first();
    await cell.click();
    await page.waitForTimeout(200);
    await shot(page, `${size}-${colorScheme}-words`);
    for (const section of SECTIONS) {
      if ((await page.locator(`#${section}`).count()) === 0) continue;
      await page.evaluate((section) => document.getElementById(section).scrollIntoView({ behavior: "instant" }), section);
      await page.waitForTimeout(200);
      await shot(page, `${size}-${colorScheme}-${section}`);
    }
    await page.goto(`${base}?forum`);
    await page.waitForSelector("[data-motion='1'] .decide");
    await page.waitForSelector(".forum .now");
    await shot(page, `${size}-${colorScheme}-forum`);
    await page.evaluate(() => document.getElementById("forum-fairness").scrollIntoView({ behavior: "instant" }));
    await page.waitForTimeout(200);
    await shot(page, `${size}-${colorScheme}-forum-fairness`);
    await page.goto(`${base}?forum=1`);
    await page.waitForSelector(".reply textarea");
    await shot(page, `${size}-${colorScheme}-forum-thread`);
    await page.goto(`${base}?forum`);
    await page.click("text=Propose");
    await page.waitForSelector("dialog select");
    await shot(page, `${size}-${colorScheme}-forum-propose`);
    const { thread } = await post("page/ask", { question: LIVE, method: "ask" });
    await page.goto(`${base}?thread=${thread}`);
    await page.waitForFunction(() => document.querySelectorAll(".growing").length >= 4 && [...document.querySelectorAll(".growing")].every((one) => one.textContent.length > 60));
    await shot(page, `${size}-${colorScheme}-live`);
    await post(`page/threads/${thread}/stop`, {});
    await page.waitForFunction(() => document.querySelectorAll(".growing").length === 0);
    await shot(page, `${size}-${colorScheme}-stopped`);
    await context.close();
  }
}
console.log(`${taken.length} pictures in ${shots}`);
await browser.close();
server.kill("SIGTERM");
await once(server, "exit");
cycle.kill("SIGKILL");
fake.stop();
