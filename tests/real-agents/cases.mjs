// The cases that tests/real-agents/run plays with each agent. Comes in: names of agents; KD_BIN and SCRATCH in the
// environment. Goes out: the table. Must run in network and process namespaces of its own.
import { spawn, execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { createServer, request as forward } from "node:http";
import { compare } from "./cache.mjs";

const bin = process.env.KD_BIN;
const modules = join(process.env.SCRATCH, "node_modules");
const answer = "Hello from the loopback model. Normalise the schema first, then measure, then denormalise only the hot path.";
const bench = process.argv.includes("--bench");
const only = process.env.KD_REAL_CASES?.split(",").filter(Boolean) ?? [];
const caches = process.argv.includes("--cache");
const asked = process.argv.slice(2).filter((word) => !word.startsWith("--"));

execFileSync("ip", ["link", "set", "lo", "up"]);
const top = mkdtempSync(join(tmpdir(), "kd-real-agents-"));
process.on("exit", () => rmSync(top, { recursive: true, force: true }));

// The model server: what happens is told by the first part of the path.
const server = spawn(join(bin, "kd-fake"), ["models"], { stdio: ["pipe", "pipe", "inherit"] });
const url = await new Promise((done) => createInterface({ input: server.stdout }).once("line", done));

function native(folder, ...names) {
  // The program itself where the package has it, and not the script of Node around it.
  const at = join(modules, folder);
  if (!existsSync(at)) return undefined;
  const found = readdirSync(at, { recursive: true }).find((path) => names.some((name) => path === name || path.endsWith(`/${name}`)));
  if (!found) return undefined;
  chmodSync(join(at, found), 0o755);
  return join(at, found);
}
const shim = (name) => join(modules, ".bin", name);

// How each agent is told where the model is; `options` is its part of the configuration of kd.
const agents = {
  claude: (home, base) => ({
    command: native("@anthropic-ai/claude-code-linux-x64", "claude") ?? shim("claude"),
    env: { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: "dummy", IS_SANDBOX: "1", CLAUDE_CODE_MAX_RETRIES: "1" },
    options: { backend: "claude_code" },
  }),
  codex: (home, base) => {
    mkdirSync(join(home, ".codex"), { recursive: true });
    writeFileSync(
      join(home, ".codex/config.toml"),
      `model = "gpt-5.1-codex"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\nbase_url = "${base}/v1"\n` +
        `wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\nrequest_max_retries = 1\nstream_max_retries = 2\n`,
    );
    return {
      command: native("@openai/codex-linux-x64", "bin/codex") ?? shim("codex"),
      env: { CODEX_HOME: join(home, ".codex"), OPENAI_API_KEY: "dummy" },
      options: { backend: "codex" },
    };
  },
  gemini: (home, base) => {
    mkdirSync(join(home, ".gemini"), { recursive: true });
    const settings = { security: { auth: { selectedType: "gemini-api-key" } }, general: { maxAttempts: 2, retryFetchErrors: false } };
    writeFileSync(join(home, ".gemini/settings.json"), JSON.stringify(settings));
    return {
      command: shim("gemini"),
      // The user trusts the folder; without it the program's own trust step stays in force.
      env: { GEMINI_API_KEY: "dummy", GOOGLE_GEMINI_BASE_URL: base, GEMINI_CLI_TRUST_WORKSPACE: "true" },
      options: { backend: "gemini", model: "gemini-2.5-flash" },
    };
  },
  opencode: (home, base) => {
    const options = { baseURL: `${base}/v1`, apiKey: "dummy" };
    const provider = { fake: { npm: "@ai-sdk/openai-compatible", name: "Fake", options, models: { "fake-1": { name: "Fake" } } } };
    writeFileSync(join(home, "opencode.json"), JSON.stringify({ provider, model: "fake/fake-1", small_model: "fake/fake-1" }));
    return {
      command: native("opencode-linux-x64", "bin/opencode") ?? shim("opencode"),
      env: { OPENCODE_CONFIG: join(home, "opencode.json") },
      options: { backend: "opencode" },
    };
  },
  "acp-codex": (home, base) => ({
    ...agents.codex(home, base),
    command: native("@zed-industries/codex-acp-linux-x64", "bin/codex-acp", "codex-acp") ?? shim("codex-acp"),
    options: { backend: "acp", env: ["CODEX_HOME", "OPENAI_API_KEY"] },
  }),
  "acp-codex-js": (home, base) => ({
    ...agents.codex(home, base),
    command: native("@agentclientprotocol/codex-acp", "dist/index.js"),
    options: { backend: "acp", env: ["CODEX_HOME", "OPENAI_API_KEY"] },
  }),
  "acp-claude": (home, base) => ({
    ...agents.claude(home, base),
    command: shim("claude-agent-acp"),
    options: { backend: "acp", env: ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "IS_SANDBOX", "CLAUDE_CODE_MAX_RETRIES"] },
  }),
};

// An agent that begins in a mode in which it writes without asking.
agents.qwen = (home, base) => ({
  command: [shim("qwen"), "--acp", "--auth-type", "openai"],
  env: { OPENAI_API_KEY: "dummy", OPENAI_BASE_URL: `${base}/v1`, OPENAI_MODEL: "fake-1" },
  options: { backend: "acp", env: ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"] },
});

/** More members of the same kind. */
const twins = ["two", "three", "four", "five", "six"];

/** A fresh home and a fresh repository for one case; how to start `kd` there. */
function stage(agent, scene, more = {}) {
  const home = mkdtempSync(join(top, `${agent}-${scene}-`));
  const work = join(home, "work");
  mkdirSync(work);
  execFileSync("git", ["init", "-q"], { cwd: work });
  for (const [name, words] of Object.entries(more.files ?? {})) writeFileSync(join(work, name), words);
  for (const [name, words] of Object.entries(more.home ?? {})) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), words);
  }
  const { command, env, options } = agents[agent](home, `${more.url ?? url}/${scene}.${agent}-${Date.now()}`);
  const member = { ...options, command: [command].flat(), ...more.agent };
  const config = { council: more.council, agents: Object.fromEntries([agent, ...twins].map((name) => [name, member])) };
  mkdirSync(join(home, ".config/kd"), { recursive: true });
  writeFileSync(join(home, ".config/kd/config.json"), JSON.stringify(config));
  const own = { PATH: process.env.PATH, HOME: home, TMPDIR: top, LANG: "C.UTF-8", ...env };
  return (...args) => {
    const kd = join(bin, "kd");
    const stdio = [more.input || more.terminal || more.open ? "pipe" : "ignore", "pipe", "pipe"];
    const child = more.terminal
      ? spawn("script", ["-qfec", [kd, ...args].join(" "), "/dev/null"], { cwd: work, env: { ...own, TERM: "xterm" }, stdio })
      : spawn(kd, args, { cwd: work, env: own, stdio });
    // It may leave before it has read everything.
    child.stdin?.on("error", () => {});
    if (!more.terminal && !more.open) child.stdin?.end(more.input);
    const run = { child, work, args, out: "", err: "", records: [], watchers: [] };
    createInterface({ input: child.stdout }).on("line", (line) => {
      run.out += `${line}\n`;
      run.watchers.forEach((watch) => watch(line));
    });
    child.stderr.on("data", (data) => (run.err += data));
    run.ended = new Promise((done) => child.on("close", (code, signal) => done(code ?? signal)));
    last = run;
    run.until = (test) => new Promise((done) => run.watchers.push((line) => test(line) && done()));
    return run;
  };
}

/** The run that was started last, for the words of a failure. */
let last;
const ask = (agent, more = []) => ["council", "ask", "--members", agent, "--no-conclude", "--jsonl", ...more, "What should we do?"];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const inTime = (promise, ms, what) =>
  Promise.race([promise, sleep(ms).then(() => Promise.reject(new Error(`${what}: not within ${ms / 1000} s`)))]);
const records = (run) => run.out.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
const isText = (line) => line.includes('"kind":"text"');

/** Processes of this namespace that are neither this script nor the server. */
function others() {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid && Number(name) !== server.pid)
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        const dead = " ZX".includes(stat.slice(stat.lastIndexOf(")") + 2)[0]);
        return dead ? [] : [{ pid, line: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() }];
      } catch {
        return [];
      }
    });
}

async function nobodyLeft() {
  for (let tries = 0; tries < 30; tries += 1) {
    if (others().length === 0) return;
    await sleep(100);
  }
  throw new Error(`left after 3 s: ${others().map((other) => other.line.slice(0, 60)).join("; ")}`);
}

function expect(what, seen, ...wanted) {
  if (!wanted.includes(seen)) throw new Error(`${what} is ${JSON.stringify(seen)}, not ${wanted.map((w) => JSON.stringify(w)).join(" or ")}`);
}

/** The text that was kept, or the kind of the failure. */
function outcome(run) {
  const all = records(run);
  const message = all.map((r) => r.message).find((m) => m && m.from !== "king");
  const failed = all.find((r) => r.type === "turn_failed" || r.failure);
  return { text: message?.body ?? message?.text, kind: failed?.failure?.kind, message: failed?.failure?.message, pieces: all.filter((r) => isText(JSON.stringify(r))).length };
}

/** The failure of a run's turn in words, where it told one. */
function why(run) {
  try {
    return outcome(run).message;
  } catch {
    return undefined;
  }
}

// Some programs ask again for minutes and say nothing: then the deadline ends them, which is right, too.
const patient = (agent) => ["gemini", "opencode", "qwen"].includes(agent);

const cases = {
  async answers(agent) {
    const run = stage(agent, "answer")(...ask(agent, ["--timeout", "120"]));
    expect("exit code", await inTime(run.ended, 130e3, "answer"), 0);
    expect("answer", outcome(run).text?.trim(), answer);
  },
  async streams(agent) {
    // Ten seconds of words: on a busy machine those of a tenth of a second arrive as one piece.
    const run = stage(agent, "steady")(...ask(agent, ["--timeout", "120"]));
    await inTime(run.ended, 130e3, "answer");
    const { pieces } = outcome(run);
    if (pieces < 3) throw new Error(`${pieces} pieces`);
  },
  async "10 MB"(agent) {
    const input = "A line of the file that is asked about, with a number at its end: 12345\n".repeat(140_000);
    const run = stage(agent, "answer", { input })(...ask(agent, ["--timeout", "120"]));
    const code = await inTime(run.ended, 130e3, "answer");
    const { text, kind, message } = outcome(run);
    // Whole, or told in words that it is too much for the program itself.
    if (code === 0) expect("answer", text?.trim(), answer);
    else if (code !== 6 || !/too long|too large|maximum length/i.test(message)) throw new Error(`code ${code}, ${kind}: ${message}`);
    return code === 0 ? "ok" : "told";
  },
  // In the chat it starts at the first word, waits for the message, and is the one that answers it.
  async early(agent) {
    try {
      execFileSync("script", ["--version"]);
    } catch {
      return "no terminal";
    }
    const run = stage(agent, "answer", { terminal: true })("chat", "--members", agent);
    const until = async (what, test) => {
      const begun = Date.now();
      while (!test()) {
        if (Date.now() - begun > 120e3) throw new Error(`${what} never came`);
        await sleep(50);
      }
    };
    let shown = "";
    run.child.stdout.on("data", (data) => (shown += data));
    await until("the screen", () => shown.includes("your message"));
    const before = others().length;
    run.child.stdin.write("What should ");
    await until("the program", () => others().length > before);
    // Longer than some programs wait for their stdin.
    await sleep(6e3);
    shown = "";
    const sent = Date.now();
    run.child.stdin.write("we do?\r");
    await until("the first word", () => shown.includes("Hello"));
    const seconds = (Date.now() - sent) / 1000;
    const threads = join(run.work, ".kd/branches");
    const answered = () => {
      const files = existsSync(threads) ? readdirSync(threads, { recursive: true }).filter((path) => path.endsWith(`-${agent}.md`)) : [];
      return files.some((path) => readFileSync(join(threads, path), "utf8").includes(answer));
    };
    await until("the answer", answered);
    run.child.stdin.write("\x04");
    await inTime(run.ended, 10e3, "end");
    await nobodyLeft();
    return `${seconds.toFixed(2)} s`;
  },
  async interrupt(agent) {
    const run = stage(agent, "slow")(...ask(agent, ["--timeout", "120"]));
    await inTime(run.until(isText), 120e3, "first word");
    const stopped = Date.now();
    run.child.kill("SIGINT");
    expect("exit code", await inTime(run.ended, 10e3, "end"), 130);
    await nobodyLeft();
    return `${((Date.now() - stopped) / 1000).toFixed(1)} s`;
  },
  async timeout(agent) {
    const run = stage(agent, "silent")(...ask(agent, ["--timeout", "8"]));
    expect("exit code", await inTime(run.ended, 20e3, "end"), 124);
    await nobodyLeft();
  },
  async refused(agent) {
    const run = stage(agent, "401")(...ask(agent, ["--timeout", "60"]));
    expect("exit code", await inTime(run.ended, 70e3, "end"), 6);
    expect("kind", outcome(run).kind, "auth");
  },
  async overloaded(agent) {
    const run = stage(agent, "529")(...ask(agent, ["--timeout", "20"]));
    expect("exit code", await inTime(run.ended, 40e3, "end"), 6, ...(patient(agent) ? [124] : []));
    expect("kind", outcome(run).kind, "overloaded", ...(patient(agent) ? ["timeout"] : []));
    await nobodyLeft();
  },
  async drop(agent) {
    const run = stage(agent, "drop")(...ask(agent, ["--timeout", "20"]));
    const code = await inTime(run.ended, 40e3, "end");
    const { text } = outcome(run);
    // Whole, or told as failed; never half or twice.
    if (code === 0) expect("answer", text?.trim(), answer);
    else expect("exit code", code, 6, 124);
    return code === 0 ? "whole" : "failed";
  },
  async tools(agent) {
    const run = stage(agent, "tool")(...ask(agent, ["--timeout", "120", "--writable"]));
    const sleepers = () => others().filter((other) => other.line.startsWith("tail -f")).length >= 2;
    const begun = Date.now();
    let over = false;
    run.ended.then(() => (over = true));
    while (!sleepers()) {
      // An agent may refuse the shell before anything is started; the table says so.
      if (over && outcome(run).text) return "no tool";
      if (over || Date.now() - begun > 60e3) throw new Error(`the tool did not start: ${JSON.stringify(outcome(run))}`);
      await sleep(50);
    }
    run.child.kill("SIGINT");
    expect("exit code", await inTime(run.ended, 10e3, "end"), 130);
    await nobodyLeft();
  },
  // However kd ends, its agents and their tools end.
  async killed(agent) {
    for (const signal of ["SIGKILL", "SIGQUIT", "SIGUSR1"]) {
      const run = stage(agent, "slow")(...ask(agent, ["--timeout", "120"]));
      await inTime(run.until(isText), 120e3, "first word");
      run.child.kill(signal);
      await nobodyLeft();
    }
  },
  // A tool that clears its environment, leaves its session and forks twice; then kd is killed.
  async orphan(agent) {
    for (const signal of ["SIGINT", "SIGKILL"]) {
      const run = stage(agent, "orphan")(...ask(agent, ["--timeout", "120", "--writable"]));
      const daemon = () => others().some((other) => other.line.startsWith("tail -F"));
      const begun = Date.now();
      let over = false;
      run.ended.then(() => (over = true));
      while (!daemon()) {
        if (over && outcome(run).text) return "no tool";
        if (over || Date.now() - begun > 60e3) throw new Error(`the tool did not start: ${JSON.stringify(outcome(run))}`);
        await sleep(50);
      }
      run.child.kill(signal);
      await inTime(run.ended, 10e3, "end");
      await nobodyLeft();
    }
  },
  // It may only read, and can.
  async reads(agent) {
    const run = stage(agent, "read", { files: { "notes.txt": "the note has the number 4711\n" } })(...ask(agent, ["--timeout", "60"]));
    await inTime(run.ended, 70e3, "end");
    const { text } = outcome(run);
    if (text?.includes("No tool was offered")) return "no tool";
    if (!text?.includes(answer)) throw new Error(`it read nothing: ${JSON.stringify(text)}`);
  },
  // What it may not read stays unread, whatever its commands try: the keys of others in its home.
  async rights(agent) {
    const run = stage(agent, "rights", { home: { ".ssh/id": "the key of somebody else\n" } })(...ask(agent, ["--timeout", "60"]));
    await inTime(run.ended, 70e3, "end");
    const { text } = outcome(run);
    if (text?.includes("No tool was offered")) return "no tool";
    if (text?.includes(answer)) return;
    // Some agents end their turn when they are refused a tool.
    if (text?.includes("The key came back") || !/refused a tool/.test(why(run))) throw new Error(`not kept from the key: ${JSON.stringify(text)}`);
    return "refused";
  },
  async readonly(agent) {
    const run = stage(agent, "write")(...ask(agent, ["--timeout", "60"]));
    await inTime(run.ended, 70e3, "end");
    if (existsSync(join(run.work, "broken.txt"))) throw new Error("it wrote a file");
  },
  async doctor(agent) {
    const run = stage(agent, "answer")("doctor", "--json", agent);
    expect("exit code", await inTime(run.ended, 90e3, "end"), 0);
    const [report] = JSON.parse(run.out);
    // This model does not try to write.
    expect("read_only", report.read_only ?? null, null);
    expect("write_tried", report.write_tried, false);
    expect("streams", report.streams, true);
    return report.version?.match(/[\d.]+\d/)?.[0];
  },
};

/** Seconds from each turn's question to its first word. */
function waits(run) {
  const began = new Map();
  const seconds = new Map();
  for (const record of records(run)) {
    if (record.event === "turn_queued") began.set(record.turn, Date.parse(record.ts));
    const first = record.event === "turn_delta" && record.delta.kind === "text" && !seconds.has(record.turn);
    if (first) seconds.set(record.turn, (Date.parse(record.ts) - began.get(record.turn)) / 1000);
  }
  return [...seconds.values()];
}

const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)]?.toFixed(2) ?? "-";

/** Seconds to the first word: one program for each question, and one program for all of them. */
async function measure(agent) {
  const cold = [];
  for (let times = 0; times < 5; times += 1) {
    const run = stage(agent, "answer", { agent: { warm: false } })(...ask(agent, ["--timeout", "120"]));
    await inTime(run.ended, 130e3, "answer");
    cold.push(...waits(run));
  }
  // Six of a kind, one after the other: the first starts the program, the others find it.
  const council = { mode: "sequential" };
  const run = stage(agent, "answer", { council })(...ask([agent, ...twins].join(), ["--timeout", "120"]));
  await inTime(run.ended, 130e3, "answers");
  const [first, ...later] = waits(run);
  console.log(`${agent.padEnd(12)} cold ${median(cold)} s   kept running: first ${first?.toFixed(2)} s, then ${median(later)} s (${later.length} turns)`);
}

/** The longest of five stops, in seconds until no process is left: after Ctrl+C, after a deadline, and at a good end. */
async function stops(agent) {
  const took = { interrupt: 0, deadline: 0, "good end": 0 };
  const gone = async (what, since) => {
    await nobodyLeft();
    took[what] = Math.max(took[what], (Date.now() - since) / 1000);
  };
  for (let times = 0; times < 5; times += 1) {
    const slow = stage(agent, "slow")(...ask(agent, ["--timeout", "120"]));
    await inTime(slow.until(isText), 120e3, "first word");
    const stopped = Date.now();
    slow.child.kill("SIGINT");
    await inTime(slow.ended, 10e3, "end");
    await gone("interrupt", stopped);
    const whole = stage(agent, "answer")(...ask(agent, ["--timeout", "120"]));
    await inTime(whole.until((line) => line.includes('"floor_yielded"')), 120e3, "answer");
    await gone("good end", Date.now());
  }
  const late = stage(agent, "silent")(...ask(agent, ["--timeout", "8"]));
  await inTime(late.until((line) => line.includes('"turn_queued"')), 20e3, "question");
  const due = Date.now() + 8e3;
  await inTime(late.ended, 20e3, "end");
  await gone("deadline", due);
  const words = Object.entries(took).map(([what, seconds]) => `${what} ${seconds.toFixed(1)} s`);
  console.log(`${agent.padEnd(12)} nobody left after: ${words.join(", ")}`);
}

/** A server before the model server that keeps the bodies of questions to models. */
async function between(bodies) {
  const proxy = createServer((from, to) => {
    let body = Buffer.alloc(0);
    from.on("data", (data) => (body = Buffer.concat([body, data])));
    from.on("end", () => {
      const question = /\/(messages|responses)(\?|$)/.test(from.url) && JSON.parse(body);
      // Titles and the like have no tools.
      if (question?.tools?.length) bodies.push(question);
      const on = forward(url + from.url, { method: from.method, headers: from.headers }, (answered) => {
        to.writeHead(answered.statusCode, answered.headers);
        answered.pipe(to);
      });
      on.on("error", () => to.destroy());
      on.end(body);
    });
  });
  await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
  return proxy;
}

/** A chat of fifty turns, and what its prompts cost beside a session that is resumed. */
async function kept(agent) {
  const bodies = [];
  const proxy = await between(bodies);
  const more = { open: true, url: `http://127.0.0.1:${proxy.address().port}`, council: { members: [agent], auto_messages: 0 } };
  const run = stage(agent, "answer", more)("chat", "--plain");
  for (let turn = 1; turn <= 50; turn += 1) {
    const done = run.until((line) => line.startsWith("kd: your turn"));
    run.child.stdin.write(`Point ${turn}: ${"what follows for the schema, the indexes and the migration? ".repeat(12)}\n`);
    await inTime(done, 120e3, `turn ${turn}`);
  }
  run.child.stdin.end("/quit\n");
  await inTime(run.ended, 20e3, "end");
  proxy.close();
  expect("requests", bodies.length, 50);
  for (const body of bodies) {
    const said = (body.messages ?? body.input).filter((message) => message.role === "assistant");
    expect("answers of a session before", said.length, 0);
  }
  const { fresh, resumed, plain } = compare(agent, bodies, answer);
  const ratio = fresh / resumed;
  console.log(`${agent.padEnd(12)} ${Math.round(plain / 1000)} k tokens sent; beside a resumed session ${ratio.toFixed(2)} times, without a cache ${(plain / resumed).toFixed(2)} times`);
  return ratio;
}

if (caches) {
  const ratios = [];
  for (const agent of asked) ratios.push(await kept(agent));
  server.stdin.end();
  process.exit(ratios.every((ratio) => ratio < 2) ? 0 : 1);
}

if (bench) {
  for (const agent of asked) {
    await measure(agent);
    await stops(agent);
  }
  server.stdin.end();
  process.exit(0);
}

for (const name of Object.keys(cases)) if (only.length > 0 && !only.includes(name)) delete cases[name];
const failures = [];
const rows = [];
for (const agent of asked) {
  const row = [agent];
  for (const [name, play] of Object.entries(cases)) {
    try {
      row.push((await play(agent)) ?? "ok");
    } catch (error) {
      row.push("FAILED");
      const said = [why(last), last?.err.trim().split("\n").slice(-3).join(" | ")].filter(Boolean).join(" | ");
      failures.push(`${agent}, ${name}: ${error.message}${said ? ` (${said})` : ""}`);
    }
    others().forEach(({ pid }) => {
      try {
        process.kill(Number(pid), "SIGKILL");
      } catch {
        // Gone meanwhile.
      }
    });
  }
  rows.push(row);
}
const head = ["agent", ...Object.keys(cases)];
const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => String(row[at]).length)));
for (const row of [head, ...rows]) console.log(row.map((cell, at) => String(cell).padEnd(widths[at])).join("  ").trimEnd());
failures.forEach((failure) => console.log(`  ${failure}`));
const all = rows.flatMap((row) => row.slice(1));
console.log(`real agents: ${all.length - failures.length} passed, ${failures.length} failed`);
server.stdin.end();
process.exit(failures.length > 0 ? 1 : 0);
