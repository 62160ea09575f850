// The figures of the page: bytes, first paint, and what it costs while members stream. See `figures`.

import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { gzipSync } from "node:zlib";
import { ask, home, minimal, serve, stopAll, thread, token } from "./figures-home.mjs";

const [top, ...named] = process.argv.slice(2);
const parts = named.length > 0 ? named : ["bytes", "paint", "stream"];
const SIZES = [10, 1_000, 10_000];
const ROUNDS = 9;
const SECONDS = 20;
// 200 tokens a second of eight members together, and of each.
const PACES = [
  { name: "a", what: "8 members, 200 tokens a second together", every: 40 },
  { name: "b", what: "8 members, 200 tokens a second each", every: 5 },
];

const place = await home(top, process.env.FAKE, PACES.map(({ name, every }) => [name, Math.ceil(((SECONDS + 15) * 1000) / every), every * 1000]));
const { url: base } = await serve(process.env.KD, place);
const floor = await minimal();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const control = await browser.newBrowserCDPSession();

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const column = (value, digits) => (value === undefined ? "–" : value.toFixed(digits)).padStart(10);
/** Prints a figure of the page and of the minimal page. */
function row(what, ours, theirs, unit, digits = 1) {
  const ratio = ours !== undefined && theirs ? `${(ours / theirs).toFixed(2)} x` : "–";
  console.log(`${what.padEnd(62)}${column(ours, digits)}${column(theirs, digits)} ${unit.padEnd(4)}${ratio.padStart(9)}`);
}

/** Opens a tab that notes when the wanted message is on the screen, in ms since the navigation began. */
async function tab(address, wanted, viewport = { width: 1280, height: 900 }) {
  const context = await browser.newContext({ viewport });
  await context.addInitScript(
    ({ token, wanted }) => {
      if (location.protocol === "http:") sessionStorage.setItem("kd-token", token);
      const look = () => {
        const message = document.getElementById(wanted);
        if (!message) return requestAnimationFrame(look);
        message.scrollIntoView({ behavior: "instant" });
        // The frame after the next one begins when that one is painted.
        requestAnimationFrame(() => requestAnimationFrame(() => (globalThis.shown = performance.now())));
      };
      if (wanted) requestAnimationFrame(look);
    },
    { token, wanted },
  );
  const page = await context.newPage();
  await page.goto(address);
  return page;
}

async function paints(address, wanted) {
  const page = await tab(address, wanted);
  const isThere = () => globalThis.shown && performance.getEntriesByName("first-contentful-paint").length > 0;
  await page.waitForFunction(isThere, null, { timeout: 300_000, polling: 100 });
  const times = await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0].startTime, globalThis.shown]);
  await page.context().close();
  return times;
}

async function paint() {
  for (const size of SIZES) {
    const id = await thread(base, place, size);
    const addresses = [`${base}/?thread=${id}`, `${floor.url}/${size}`];
    const taken = [[], []];
    // The first one is not counted: it makes the index of the thread.
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const [at, address] of addresses.entries()) {
        const times = await paints(address, `m${size}`);
        if (round > 0) taken[at].push(times);
      }
    }
    const name = `${size.toLocaleString("en")} messages`;
    for (const [at, what] of ["first contentful paint", "newest message visible"].entries()) {
      for (const [which, of] of [["median", median], ["best", (all) => Math.min(...all)]]) {
        row(`${name}: ${what}, ${which} of ${ROUNDS}`, ...taken.map((all) => of(all.map((times) => times[at]))), "ms");
      }
    }
  }
}

/** Memory of a process that is its own, in MB. */
function memory(pid) {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kib = (name) => Number(rollup.match(new RegExp(`^${name}:\\s+(\\d+)`, "m"))[1]);
  return (kib("Private_Clean") + kib("Private_Dirty")) / 1024;
}

async function browserCpu() {
  const { processInfo } = await control.send("SystemInfo.getProcessInfo");
  return processInfo.reduce((sum, one) => sum + one.cpuTime, 0);
}

/** The share of a core that the main thread of a page's renderer needs for a while, by a trace: by the duration of its tasks,
 * which includes the waiting for a core, and by their processor time. */
async function traced(seconds) {
  const events = [];
  const hear = ({ value }) => events.push(...value);
  const ended = new Promise((done) => control.once("Tracing.tracingComplete", done));
  control.on("Tracing.dataCollected", hear);
  const before = await browserCpu();
  await control.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { recordMode: "recordAsMuchAsPossible", includedCategories: ["devtools.timeline", "disabled-by-default-devtools.timeline"], excludedCategories: ["*"] },
  });
  const began = performance.now();
  await new Promise((done) => setTimeout(done, seconds * 1000));
  const wall = performance.now() - began;
  const all = (await browserCpu()) - before;
  await control.send("Tracing.end");
  await ended;
  control.off("Tracing.dataCollected", hear);
  const mains = events.filter((one) => one.name === "thread_name" && one.args.name === "CrRendererMain");
  const tasksOf = ({ pid, tid }) => events.filter((one) => one.name === "RunTask" && one.dur && one.pid === pid && one.tid === tid);
  // One page is open: the other renderers are spare.
  const busiest = mains.map((main) => ({ pid: main.pid, tasks: tasksOf(main) })).sort((a, b) => b.tasks.length - a.tasks.length)[0];
  if (!busiest?.tasks.length) throw new Error("the trace has no tasks of the page");
  const { pid, tasks } = busiest;
  const share = (field) => (tasks.reduce((sum, one) => sum + (one[field] ?? 0), 0) / 1000 / wall) * 100;
  return { pid, tasks: share("dur"), cpu: share("tdur"), all: (all * 1e5) / wall, longest: Math.max(...tasks.map((one) => one.dur)) / 1000, memory: memory(pid) };
}

async function stream() {
  const small = await thread(base, place, 10);
  const large = await thread(base, place, 10_000);
  const cases = [...PACES.map((pace) => ({ ...pace, id: small, messages: 10 })), { ...PACES[0], id: large, messages: 10_000 }];
  for (const { name, what, every, id, messages } of cases) {
    const ours = await tab(`${base}/?thread=${id}`, `m${messages}`);
    await ours.waitForFunction(() => globalThis.shown, null, { timeout: 300_000, polling: 100 });
    const members = Array.from({ length: 8 }, (_, at) => `${name}${at + 1}`);
    await ask(base, { question: "Which way?", members, thread: id });
    await ours.waitForFunction(() => document.querySelectorAll(".growing").length === 8 && [...document.querySelectorAll(".growing")].every((one) => one.textContent), null, { timeout: 120_000, polling: 100 });
    await ours.evaluate(() => (document.documentElement.scrollTop = document.documentElement.scrollHeight));
    await ours.waitForTimeout(1500);
    const length = () => ours.evaluate(() => [...document.querySelectorAll(".growing")].reduce((sum, one) => sum + one.textContent.length, 0));
    const said = await length();
    const kd = await traced(SECONDS);
    const tokens = ((await length()) - said) / " token".length / SECONDS;
    await fetch(`${base}/page/threads/${id}/stop`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: "{}" });
    await ours.waitForFunction(() => document.querySelectorAll(".growing").length === 0, null, { timeout: 120_000, polling: 100 });
    await ours.context().close();
    const theirs = await tab(`${floor.url}/${messages}?every=${every}`);
    await theirs.evaluate(() => (document.documentElement.scrollTop = document.documentElement.scrollHeight));
    await theirs.waitForTimeout(1500);
    const least = await traced(SECONDS);
    await theirs.context().close();
    console.log(`${what}, in a thread of ${messages.toLocaleString("en")} messages, ${SECONDS} s; ${tokens.toFixed(0)} tokens a second were shown`);
    row("  main thread of the renderer, tasks of the trace", kd.tasks, least.tasks, "%");
    row("  the same, without the time spent waiting for a core", kd.cpu, least.cpu, "%");
    row("  longest task", kd.longest, least.longest, "ms");
    row("  all processes of the browser", kd.all, least.all, "%");
    row("  private memory of the renderer", kd.memory, least.memory, "MB");
  }
}

async function bytes() {
  const response = await fetch(base);
  const text = Buffer.from(await response.arrayBuffer());
  row("the page, bytes", text.length, undefined, "", 0);
  row("the page, bytes with gzip -9", gzipSync(text, { level: 9 }).length, undefined, "", 0);
}

console.log(`${browser.version()}, load ${loadavg()[0].toFixed(1)}`);
console.log(`${"".padEnd(62)}${"kd".padStart(10)}${"minimal".padStart(10)}`);
try {
  for (const part of parts) await { bytes, paint, stream }[part]();
} finally {
  console.log(`load ${loadavg()[0].toFixed(1)}`);
  await browser.close();
  floor.server.close();
  floor.server.closeAllConnections();
  await stopAll();
}
