// The parts around the page that is measured: members that stream at a pace, threads of many messages, `kd serve`, and a
// minimal page that shows the same messages and the same pieces.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";

export const token = "0123456789abcdef0123456789abcdef";
const body = "Some **words** of an answer, as long as answers are. ".repeat(12);
const children = [];

/** Starts a program and returns the first line that it prints. */
async function started(program, args, options = {}) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], ...options });
  children.push(child);
  const [first] = await once(child.stdout, "data");
  child.stdout.resume();
  return { child, url: String(first).split("\n")[0].trim().replace(/\/$/, "") };
}

export async function stopAll() {
  for (const child of children.filter((child) => child.exitCode === null)) {
    child.kill("SIGTERM");
    await once(child, "exit");
  }
}

/** A home with members of two paces, `a1` to `a8` and `b1` to `b8`, and an answer at once, `quick`. */
export async function home(top, fake, paces) {
  const folder = mkdtempSync(path.join(top, "home-"));
  const providers = {};
  for (const [name, tokens, micros] of [...paces, ["now", 5, 0]]) {
    const service = await started(fake, ["openai", String(tokens), ...(micros ? [String(micros)] : [])]);
    providers[name] = { wire: "openai", base_url: service.url };
  }
  const agents = { quick: { backend: "now", model: "fake" } };
  for (const [name] of paces) {
    for (let n = 1; n <= 8; n += 1) agents[`${name}${n}`] = { backend: name, model: "fake" };
  }
  const config = { providers, agents, council: { members: ["quick"], auto_messages: 0 } };
  mkdirSync(path.join(folder, ".config", "kd"), { recursive: true });
  mkdirSync(path.join(folder, "work", ".kd"), { recursive: true });
  writeFileSync(path.join(folder, ".config", "kd", "config.json"), JSON.stringify(config));
  return { cwd: path.join(folder, "work"), env: { ...process.env, HOME: folder, KD_SERVE_TOKEN: token } };
}

/** Makes a thread of so many messages: a question, then eight answers, and so on. Returns its ID. */
export async function thread(base, { cwd }, messages, member = "quick") {
  const { thread } = await ask(base, { question: "Which way?", members: [member] });
  const branches = path.join(cwd, ".kd", "branches");
  const folders = readdirSync(branches).map((branch) => path.join(branches, branch, "threads", thread));
  const folder = folders.find((one) => existsSync(one));
  const written = () => readdirSync(folder).filter((name) => /^\d+-.*\.md$/.test(name)).length;
  while (written() < 2) await new Promise((done) => setTimeout(done, 50));
  for (let n = 3; n <= messages; n += 1) {
    const isKing = n % 9 === 1;
    const from = isKing ? "king" : `a${(n % 8) + 1}`;
    const head = `from: ${from}\nto: ${isKing ? "all" : "king"}\ntimestamp: 2026-01-01T00:00:00Z\n${isKing ? "" : "status: complete\n"}`;
    writeFileSync(path.join(folder, `${String(n).padStart(4, "0")}-${from}.md`), `---\n${head}---\n\n${body}\n\nend${n}\n`);
  }
  return thread;
}

/** Asks as the page does. */
export async function ask(base, what) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${base}/page/ask`, { method: "POST", headers, body: JSON.stringify({ method: "ask", ...what }) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

/** Starts `kd serve --page`. */
export async function serve(kd, { cwd, env }) {
  return started(kd, ["serve", "--page", "--listen", "127.0.0.1:0"], { cwd, env });
}

/** The minimal page: messages as paragraphs, no Markdown; pieces as lines of JSON, each one text node in a box. */
export function minimal() {
  const script = `
const columns = document.body.appendChild(document.createElement("main"));
const boxes = Array.from({ length: 8 }, () => columns.appendChild(document.createElement("div")));
const read = async () => {
  const reader = (await fetch("/pieces" + location.search)).body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\\n");
    rest = lines.pop();
    for (const line of lines) { const { seat, text } = JSON.parse(line); boxes[seat].append(text); }
  }
};
if (location.search) read();`;
  const style = "body{font:16px/1.55 sans-serif}main{display:grid;grid-template-columns:repeat(3,1fr)}div{white-space:pre-wrap}p{content-visibility:auto;contain-intrinsic-size:auto 12rem}";
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, "http://x");
    if (url.pathname === "/pieces") {
      const every = Number(url.searchParams.get("every"));
      const began = performance.now();
      let sent = 0;
      const timer = setInterval(() => {
        for (; sent < (performance.now() - began) / every; sent += 1) {
          for (let seat = 0; seat < 8; seat += 1) response.write(`${JSON.stringify({ seat, text: " token" })}\n`);
        }
      }, every);
      response.on("close", () => clearInterval(timer));
      return;
    }
    const count = Number(url.pathname.slice(1));
    const messages = Array.from({ length: count }, (_, at) => `<p id="m${at + 1}">${body} end${at + 1}</p>`).join("\n");
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(`<!doctype html><meta charset="utf-8"><title>minimal</title><style>${style}</style><body>${messages}<script>${script}</script>`);
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done({ server, url: `http://127.0.0.1:${server.address().port}` })));
}
