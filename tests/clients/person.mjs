// A person's session over three programs in one thread. See `person`.
//
//     node person.mjs FOLDER        [KD, CHROMIUM, MODEL: the program, the browser, model.py]

import { chromium } from "playwright-core";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const [top] = process.argv.slice(2);
const { KD: kd, CHROMIUM, MODEL, HOME: home } = process.env;
const work = path.join(home, "work");
const token = "0123456789abcdef0123456789abcdef";
const TURNS = 3;
const SAID = ["Tabs or spaces?", "And in Makefiles?", "Commit three times.", "Tabs or spaces? Choose one."];
const children = [];

/** Starts a program and returns the first line that it prints. */
async function started(program, args, options = {}) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], ...options });
  children.push(child);
  const [first] = await once(child.stdout, "data");
  child.stdout.resume();
  return String(first).split("\n")[0].trim();
}
function must(holds, why) {
  if (!holds) throw new Error(why);
}
function passed(what) {
  console.log(`passed  ${what}`);
}
function run(...args) {
  return execFileSync(kd, args, { cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
async function until(what, holds) {
  for (const end = Date.now() + 120_000; Date.now() < end; ) {
    if (await holds()) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`not seen within two minutes: ${what}`);
}

/** Codex, unchanged, with its own tools, in a working copy. */
async function codex(model, words, cwd) {
  const provider = `model_providers.kd={name="kd", base_url="${base}v1", env_key="KD_TOKEN", wire_api="responses"}`;
  const child = spawn(
    path.join(top, "node_modules/.bin/codex"),
    ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", `model=${model}`, "-c", "model_provider=kd", "-c", provider, words],
    { cwd, env: { ...process.env, KD_TOKEN: token }, stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 },
  );
  let heard = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (heard += piece));
  const [code] = await once(child, "close");
  must(code === 0, `Codex ended with ${code}: ${heard.slice(-2000)}`);
  return heard;
}

function config(service) {
  const script = (name, text) => {
    const file = path.join(home, `${name}.json`);
    writeFileSync(file, JSON.stringify({ runs: [[{ text }]] }));
    return { backend: "scripted", model: file };
  };
  return {
    providers: { svc: { wire: "openai", base_url: service } },
    agents: {
      ann: script("ann", "Spaces.\n\nVOTE: Spaces"),
      bob: script("bob", "Tabs in Makefiles.\n\nVOTE: Spaces"),
      cat: { backend: "svc", model: "acts" },
    },
    council: { members: ["ann", "bob"], auto_messages: 0 },
  };
}

let browser;
let base;
let page;
try {
  const service = await started("python3", [MODEL, String(TURNS)]);
  writeFileSync(path.join(home, ".config/kd/config.json"), JSON.stringify(config(service)));
  base = await started(kd, ["serve", "--listen", "127.0.0.1:0"], { cwd: work, env: { ...process.env, KD_SERVE_TOKEN: token } });
  base = base.replace(/[^/]*$/, "");

  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  const seen = (text) => page.waitForFunction((text) => document.querySelector("#said")?.textContent.includes(text), text, { timeout: 60_000 });
  await page.goto(`${base}#token=${token}`);
  await page.fill("#question", SAID[0]);
  await page.click("#send");
  await page.waitForSelector(".concludes", { timeout: 60_000 });
  const thread = new URL(page.url()).searchParams.get("thread");
  passed("the page asks, and shows the conclusion");

  const log = () => {
    const branches = path.join(work, ".kd/branches");
    const all = readdirSync(branches).map((branch) => path.join(branches, branch, "threads", thread, ".kd-events.jsonl"));
    return readFileSync(all.find((one) => existsSync(one)), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  };
  const rounds = () => log().filter(({ event }) => event === "floor_yielded").length;
  const before = rounds();
  const chat = spawn("script", ["-qec", `stty cols 100 rows 40; exec '${kd}' chat ${thread}`, "/dev/null"], { cwd: work, stdio: ["pipe", "pipe", "inherit"] });
  children.push(chat);
  let screen = "";
  chat.stdout.on("data", (piece) => (screen += piece));
  await until("the answers in the chat", () => screen.includes("Spaces."));
  chat.stdin.write(`${SAID[1]}\r`);
  await until("the end of the round", () => rounds() > before);
  chat.stdin.write("/quit\r");
  await once(chat, "exit");
  await seen(SAID[1]);
  passed("kd chat goes on in a terminal, and the page shows it");

  const copy = path.join(top, "copy");
  mkdirSync(copy);
  for (const args of [["init", "-q"], ["config", "user.email", "t@example.org"], ["config", "user.name", "t"]]) execFileSync("git", args, { cwd: copy });
  await codex(`kd/ask:cat,ann@${thread}`, SAID[2], copy);
  const commits = execFileSync("git", ["log", "--oneline"], { cwd: copy, encoding: "utf8" }).trim().split("\n").length;
  must(commits === TURNS, `${commits} commits of ${TURNS}`);
  await seen("All turns are done.");
  passed("Codex works with its own tools in the same thread, and the page shows it");
  const told = await codex(`kd/deliberate:ann,bob@${thread}`, SAID[3], copy);
  must(told.includes("Spaces"), told);
  await page.waitForFunction(() => document.querySelector(".verdict .outcome") && document.querySelector("#record")?.textContent.includes("events agree byte for byte"), null, { timeout: 60_000 });
  passed("the council concludes for Codex, and the page shows the decision");

  must(run("list", "--json").match(new RegExp(thread, "g")).length === 1 && readdirSync(path.join(work, ".kd/branches")).length === 1, "one thread");
  const numbers = log().filter(({ event, found }) => event === "message_added" && !found).map(({ message }) => message.seq);
  must(numbers.every((seq, at) => seq === at + 1), `messages in the order of the log: ${numbers}`);
  const shown = run("show", "--all", thread);
  const places = SAID.map((words) => shown.indexOf(words));
  must(places.every((place, at) => place >= 0 && place > (places[at - 1] ?? -1)), shown);
  run("replay", thread);
  run("fsck");
  must(faults.length === 0, faults.join(" | "));
  passed("one thread has all of it in order, and its record decides the same again");
} catch (error) {
  console.log(`FAILED  a person's session: ${error.message}`);
  console.log(await page?.innerText("#open").catch(() => ""));
  process.exitCode = 1;
} finally {
  await browser?.close();
  for (const child of children) child.kill("SIGTERM");
}
