// The page as an MCP App: `kd mcp` with the official client, in a sandboxed frame of Chromium behind the official host library.
//
//     node app.mjs FOLDER        [KD: the program, CHROMIUM: the browser, SHOTS: a folder for pictures]

import { chromium } from "playwright-core";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const work = process.argv[2];
const shots = process.env.SHOTS;
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const bridgeSource = readFileSync(new URL("bridge.js", import.meta.url), "utf8");

let failed = 0;
let passed = 0;
async function check(what, test) {
  try {
    await test();
    passed += 1;
    console.log(`passed  ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${what}: ${error.message.split("\n").slice(0, 6).join(" | ")}`);
  }
}
function must(holds, why) {
  if (!holds) throw new Error(why);
}

const client = new Client(
  { name: "test-host", version: "1" },
  { capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } } },
);
await client.connect(new StdioClientTransport({ command: process.env.KD, args: ["mcp"], cwd: work, env: process.env }));
const { tools } = await client.listTools();
const uri = tools.find((tool) => tool.name === "deliberate")._meta.ui.resourceUri;
const { contents } = await client.readResource({ uri });
const args = { question: "Tabs or **spaces**? (A) tabs (B) spaces" };
const result = await client.callTool({ name: "deliberate", arguments: args });
await client.close();

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });

/** Opens a host with the app in a frame, as hosts do: scripts only, no origin. */
async function host(theme, width) {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  page.asked = [];
  page.faults = [];
  page.on("request", (request) => page.asked.push(request.url()));
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (line) => line.type() === "error" && page.faults.push(line.text()));
  await page.setContent('<body style="margin:0"><iframe id="app" sandbox="allow-scripts" style="border:0;width:100%;height:400px"></iframe>');
  await page.addScriptTag({ content: bridgeSource });
  await page.evaluate(
    async ({ html, theme }) => {
      const frame = document.getElementById("app");
      const { AppBridge, PostMessageTransport } = globalThis.bridge;
      const bridge = new AppBridge(null, { name: "test-host", version: "1" }, { openLinks: {} }, { hostContext: { theme } });
      globalThis.app = bridge;
      globalThis.opened = [];
      globalThis.ready = new Promise((done) => (bridge.oninitialized = done));
      bridge.onsizechange = ({ height }) => {
        globalThis.height = height;
        frame.style.height = `${height}px`;
      };
      bridge.onopenlink = async ({ url }) => (globalThis.opened.push(url), {});
      await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
      frame.srcdoc = html;
      await globalThis.ready;
    },
    { html: contents[0].text, theme },
  );
  page.app = await (await page.$("#app")).contentFrame();
  return page;
}
async function shot(page, name) {
  if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: true });
}
async function axe(frame) {
  await frame.evaluate(axeSource);
  const { violations } = await frame.evaluate(() => globalThis.axe.run());
  return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" ; ")}`);
}

const page = await host("light", 760);
await check("the app greets its host, and shows the question while the council is at work", async () => {
  await page.evaluate((args) => globalThis.app.sendToolInput({ arguments: args }), args);
  await page.app.waitForSelector("text=The council is at work.");
  must((await page.app.textContent("h1")) === args.question, await page.app.textContent("#open"));
  await shot(page, "app-working");
});
await check("the result is shown: the outcome, who said what, how it was decided", async () => {
  await page.evaluate((result) => globalThis.app.sendToolResult(result), result);
  for (const selector of [".outcome", "#said", "#decided", "article.says .tools"]) await page.app.waitForSelector(selector, { state: "attached" });
  await page.waitForTimeout(300);
  await shot(page, "app-result");
});
await check("the host learns the height of the app", async () => {
  const height = await page.app.evaluate(() => document.documentElement.getBoundingClientRect().height);
  must(Math.abs((await page.evaluate(() => globalThis.height)) - height) <= 2, `${height}`);
});
await check("axe finds nothing", async () => {
  const found = await axe(page.app);
  must(found.length === 0, found.join("\n"));
});
await check("links are opened by the host, and places in the page are scrolled to", async () => {
  await page.app.evaluate(() => {
    const link = document.createElement("a");
    link.href = "https://example.org/";
    link.textContent = "x";
    document.querySelector("#said").append(link);
    link.click();
    document.querySelector("nav.sections a").click();
  });
  await page.waitForFunction(() => globalThis.opened.length === 1);
  must((await page.evaluate(() => globalThis.opened[0])) === "https://example.org/", "another address");
});
await check("it asks nothing of any server", async () => {
  const asked = page.asked.filter((url) => !url.startsWith("about:") && !url.startsWith("data:"));
  must(asked.length === 0 && page.faults.length === 0, [...asked, ...page.faults].join("\n"));
});
await check("it wears the host's theme, and changes with it", async () => {
  const paper = () => page.app.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.evaluate(() => globalThis.app.setHostContext({ theme: "dark" }));
  await page.app.waitForFunction((light) => getComputedStyle(document.body).backgroundColor !== light, light);
  await shot(page, "app-dark");
});
await check("a failed and a cancelled call are told, and teardown is answered", async () => {
  await page.evaluate(() => globalThis.app.sendToolResult({ content: [{ type: "text", text: "<b>no</b> members" }], isError: true }));
  await page.app.waitForSelector("text=<b>no</b> members");
  await page.evaluate(() => globalThis.app.sendToolCancelled({ reason: "user" }));
  await page.app.waitForSelector("text=The call was cancelled.");
  await page.evaluate(() => globalThis.app.teardownResource({}));
});
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
