// What a user does in the page, in Chromium, with a council that deliberates as its stages ask (`council.mjs`): it follows
// the stages, reads the decision, searches, chooses members, picks, merges, asks again, and visits the forum.
//
//     node deeds.mjs HOME        [KD: the program, CHROMIUM: the browser, SHOTS: a folder for pictures]

import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { QUESTION, config, service } from "./council.mjs";
import { must, open } from "./harness.mjs";

const home = process.argv[2];
const work = path.join(home, "shop");
mkdirSync(path.join(home, ".config/kd"), { recursive: true });
mkdirSync(path.join(work, ".kd"), { recursive: true });
// Words come slowly enough to be seen, those of forms, which are few, more slowly.
const fake = await service((body) => (body.response_format ? 200 : 25));
const settings = config(fake.url);
// A member whose service is not there.
settings.providers.away = { wire: "openai", base_url: "http://127.0.0.1:9" };
settings.agents.zoe = { backend: "away", model: "zoe-1" };
writeFileSync(path.join(home, ".config/kd/config.json"), JSON.stringify(settings));
const run = (...args) => promisify(execFile)(process.env.KD, args, { cwd: work, env: { ...process.env, HOME: home } });
const { base, token, check, tab, shot, axe, end } = await open(work, home);

const page = await tab();
async function ask(question, method) {
  await page.fill("#question", question);
  await page.selectOption("#method", method);
  await page.click("#send");
}
async function clean(what) {
  const found = await axe(page);
  must(found.length === 0, `${what}: ${found.join(" || ")}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  must(wide <= 0, `${what}: ${wide} pixels too wide`);
}

await check("a new thread says who is asked", async () => {
  await page.waitForFunction(() => document.querySelector(".asks")?.textContent.includes("ann (ann-large)"));
  await shot(page, "new");
});
let decided;
await check("a deliberation tells its stages and shows no form", async () => {
  // Everything that any answer on its way shows, and any state, as they come.
  await page.evaluate(() => {
    window.seen = { texts: new Set(), states: new Set(), now: new Set() };
    const look = () => {
      for (const body of document.querySelectorAll(".growing, .grown")) window.seen.texts.add(body.textContent.slice(0, 1));
      for (const state of document.querySelectorAll("article:has(.growing) header > .faint")) window.seen.states.add(state.textContent);
      window.seen.now.add(document.querySelector(".now b")?.textContent ?? "");
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await ask(QUESTION, "deliberate");
  await page.waitForSelector(".now");
  await page.waitForFunction(() => [...window.seen.states].includes("reviewing"), undefined, { timeout: 60_000 });
  await shot(page, "reviewing");
  await page.waitForSelector(".verdict .outcome", { timeout: 120_000 });
  const { texts, states, now } = await page.evaluate(() => Object.fromEntries(Object.entries(window.seen).map(([name, set]) => [name, [...set]])));
  must(!texts.includes("{"), `a form was shown: ${texts.join(" ")}`);
  must(texts.some((text) => /\w|\*/.test(text)), "answers were shown");
  for (const state of ["reviewing", "voting", "concluding"]) must(states.includes(state), `${state}: ${states.join(", ")}`);
  must(now.some((text) => text.includes("review")) && now.some((text) => text.includes("vote")), now.join(", "));
  await page.waitForFunction(() => !document.querySelector(".now") && !document.querySelector(".growing, .grown"));
  decided = await page.evaluate(() => new URLSearchParams(location.search).get("thread"));
});
await check("the decision is one sentence, and nothing is told twice", async () => {
  const outcome = await page.innerText(".verdict .outcome");
  must(outcome === "A majority of the council (3 of 5) for “Put a queue between them”", outcome);
  const verdict = await page.innerText(".verdict");
  must(!verdict.includes("…") && !/Dissent\.|Decided\./.test(verdict), verdict);
  must((await page.locator(".verdict abbr[title]").count()) > 0, "the rule says what it does");
  const sure = await page.innerText("#sure");
  must(/3 of 5 \(95 %: 0\.\d\d to 0\.\d\d\)/.test(sure) && sure.includes("times as much"), sure);
  const differ = await page.innerText("#differ");
  must(differ.includes("gave the same answer") && differ.includes("each gave another"), differ);
  await clean("decided");
  await shot(page, "decided");
});
await check("a member alone is compared with the council, and a mark opens the words that say so, in a file too", async () => {
  const alone = await page.locator("#sure tr:has(td:has-text('×'))").allInnerTexts();
  must(alone.length >= 3 && alone.filter((row) => row.includes("is the result")).length === 2 && alone.some((row) => row.includes("is another")), alone.join(" | "));
  const opened = page.asked.length;
  const mark = page.locator("#differ td.holds a[title*='keeps selling']").first();
  await mark.click();
  await page.waitForSelector("mark:target");
  must((await page.innerText("mark:target")) === "The shop keeps selling while the warehouse is down.", await page.innerText("mark:target"));
  must(await page.locator("mark:target").evaluate((one) => getComputedStyle(one).backgroundColor !== "rgba(0, 0, 0, 0)"), "it is seen");
  await page.waitForTimeout(300);
  must(page.asked.length === opened, `nothing is fetched again: ${page.asked.slice(opened).join(" ")}`);
  await clean("words");
  await shot(page, "words");
  await run("export", decided, "-o", "decided.html");
  const file = await tab({ javaScriptEnabled: false }, `file://${path.join(work, "decided.html")}`);
  await file.locator("#differ td.holds a[title*='keeps selling']").first().click();
  must((await file.innerText("mark:target")) === "The shop keeps selling while the warehouse is down.", "in a file");
  await file.context().close();
});
await check("the list is fetched once per change, with dates", async () => {
  const lists = page.asked.filter((url) => url.endsWith("/page/threads")).length;
  must(lists <= 4, `${lists} times for the first list and one question`);
  must(/^\d{4}-\d\d-\d\dT/.test(await page.getAttribute("#list a", "title")), "a date");
});
await check("a search finds words of messages and opens the message", async () => {
  await page.fill("#search", "outbox table");
  await page.waitForSelector("#list .found");
  await shot(page, "search");
  await page.click("#list a");
  const hash = await page.evaluate(() => location.hash);
  must(/^#m\d+$/.test(hash), hash);
  await page.waitForSelector(hash);
  await page.fill("#search", "no such words anywhere");
  await page.waitForSelector("text=No message has these words.");
  await page.fill("#search", "");
  await page.waitForFunction(() => document.querySelectorAll("#list a").length > 0 && !document.querySelector(".found"));
});
await check("members are chosen, and one that failed is asked again in place", async () => {
  await page.click("#new");
  await page.click("#whom > summary");
  for (const name of ["ann", "dee", "zoe"]) await page.check(`#members input[value=${name}]`);
  await shot(page, "members");
  await clean("members");
  await page.keyboard.press("Escape");
  must((await page.innerText("#whom > summary")) === "To: ann, dee, zoe", await page.innerText("#whom > summary"));
  await ask("What first?", "ask");
  await page.waitForFunction(() => document.querySelectorAll(".says[data-status=complete]").length === 2, undefined, { timeout: 60_000 });
  const failed = page.locator(".says[data-from=zoe]");
  await failed.waitFor({ timeout: 60_000 });
  settings.providers.away.base_url = fake.url;
  await page.waitForFunction(() => !document.querySelector(".growing"));
  const before = await failed.innerText();
  await failed.locator("button", { hasText: "Retry" }).click();
  // The service is still not there for this server: what counts is that it was asked again, in its place.
  await page.waitForFunction((old) => document.querySelector(".says[data-from=zoe]")?.innerText !== old, before, { timeout: 60_000 });
  must((await page.locator(".says[data-from=zoe]").count()) === 1, "in place");
  await shot(page, "retry");
});
await check("an answer is picked, and the record says so", async () => {
  await page.locator(".says[data-from=dee] button", { hasText: "Pick" }).click();
  await page.waitForFunction(() => document.querySelector("#said").innerText.includes("I choose the answer of dee"));
  const thread = await page.evaluate(() => new URLSearchParams(location.search).get("thread"));
  const { stdout } = await run("show", thread);
  must(stdout.includes("I choose the answer of dee"), stdout);
});
await check("ticked parts of selected answers become a draft", async () => {
  for (const name of ["ann", "dee"]) await page.locator(`.says[data-from=${name}] .tools input`).first().check();
  await page.click("#picked >> text=Merge");
  await page.waitForSelector("dialog .part");
  await clean("merge");
  await shot(page, "merge");
  await page.locator("dialog .part input").last().uncheck();
  await page.click("text=Make a draft");
  const draft = await page.inputValue("#question");
  must(draft.startsWith("ann wrote:\n> ") && draft.includes("dee wrote:\n> "), draft);
  must(!draft.includes("Confidence: 0.6"), draft);
  await page.fill("#question", "");
});
await check("the user begins a forum, answers with a quote, moves and votes", async () => {
  await page.click("#forum");
  await page.waitForSelector("text=There is no forum in this folder yet.");
  must(!(await page.isVisible("#question")), "only one place to write in");
  await page.click("text=New thread");
  await page.fill("dialog input", "Which broker?");
  await page.fill("dialog textarea", "We need **one**.");
  await clean("a new thread of the forum");
  await shot(page, "forum-new");
  await page.click("dialog button[type=submit]");
  await page.waitForSelector("#p1 strong");
  await run("forum", "reply", "1", "None at all.", "--as", "eve");
  await page.waitForSelector("#p2 >> text=None at all.");
  await page.click("#p2 >> text=Quote");
  await page.fill(".reply textarea", "Why <b>none</b>?");
  await shot(page, "forum-reply");
  await clean("a reply");
  await page.click(".reply >> text=Reply");
  await page.waitForSelector("#p3 .to >> text=eve");
  must((await page.innerText("#p3 .body")) === "Why <b>none</b>?", "text is text");
  must((await page.inputValue(".reply textarea")) === "" && !(await page.isVisible(".reply p")), "it was sent");
  await page.click("text=All of the forum");
  await page.waitForSelector("text=You have no vote.");
  await run("forum", "role", "king", "voter", "so that I can vote");
  await page.click("#open >> text=Propose");
  await page.fill("dialog input", "No broker this year");
  await page.selectOption("dialog select", "role");
  must((await page.innerText("dialog label:nth-of-type(2)")).startsWith("Name role"), await page.innerText("dialog label:nth-of-type(2)"));
  await page.fill("dialog textarea", "Nobody can operate it.");
  await page.click("dialog >> button[type=submit]");
  await page.waitForSelector("dialog .bad >> text=NAME ROLE");
  await page.selectOption("dialog select", "text");
  await clean("a motion");
  await page.click("dialog >> button[type=submit]");
  await page.waitForSelector("[data-motion='1'][data-may=vote] .decide");
  await run("forum", "hide", "2", "off the point");
  await page.waitForSelector("#open >> text=hid post 2");
  await clean("forum");
  await shot(page, "forum");
  await page.fill("[data-motion='1'] .decide input", "Let us wait");
  await page.click("[data-motion='1'] >> text=Vote yes");
  await page.waitForSelector("[data-motion='1'] >> text=1 yes");
  must((await page.inputValue("[data-motion='1'] .decide input")) === "", "the reason was taken");
  await page.click("#open >> text=Which broker?");
  await page.waitForSelector("#p2 >> text=hidden by king: off the point");
  await clean("a thread of the forum");
  await shot(page, "forum-thread");
  await page.goBack();
  await page.waitForSelector("[data-motion='1']");
});
await check("a cycle is seen while it runs: who speaks, who may follow, and the turns it leaves", async () => {
  const names = ["ada", "bo", "cy"];
  mkdirSync(path.join(work, ".kd/forum/agents"), { recursive: true });
  for (const name of names) {
    const said = [{ tool: "reply_to_thread", thread_id: 1, body: `${name} would measure first. </section><script>window.hit = 1</script>` }, { tool: "finish", did: "reply_to_thread" }];
    const script = path.join(home, `${name}.json`);
    writeFileSync(script, JSON.stringify({ runs: said.map((call, at) => [...(at === 0 ? [{ sleep_ms: 4000 }] : []), { text: JSON.stringify(call) }]) }));
    writeFileSync(path.join(work, `.kd/forum/agents/${name}.yaml`), `name: ${name}\nbackend: scripted\nmodel: ${script}\nsystem_prompt: You are ${name}.\n`);
  }
  await run("trust", "--yes");
  await page.evaluate(() => {
    window.spoke = [];
    new MutationObserver(() => {
      const name = document.querySelector(".now .name")?.textContent;
      if (!name || window.spoke.some((one) => one.name === name)) return;
      window.spoke.push({ name, rest: document.querySelector("#forum-now")?.parentElement?.textContent ?? "" });
    }).observe(document.querySelector("#open"), { subtree: true, childList: true });
  });
  const cycle = run("forum", "run-once");
  await page.waitForSelector(".forum .now", { timeout: 60_000 });
  await clean("a cycle");
  await shot(page, "forum-cycle");
  await cycle;
  await page.waitForFunction(() => document.querySelector("#forum-now")?.parentElement?.textContent.includes("Cycle 1 has ended."), undefined, { timeout: 60_000 });
  const spoke = await page.evaluate(() => window.spoke);
  must(spoke.length >= 2 && spoke.every(({ name }) => names.includes(name)), JSON.stringify(spoke));
  const [first] = spoke;
  must(names.filter((name) => name !== first.name).every((name) => first.rest.includes(name)), `who may follow: ${first.rest}`);
  const fair = await page.locator(".fair").first().locator("tbody tr").allInnerTexts();
  must(fair.length === 3 && fair.every((row) => row.includes("1 of 1.0 due")), fair.join(" | "));
  must((await page.locator(".fair .due").count()) > 3, "lines to reach");
  must((await page.evaluate(() => window.hit)) === undefined, "a script ran");
  await clean("after a cycle");
  await page.locator("#forum-fairness").scrollIntoViewIfNeeded();
  await shot(page, "forum-fairness");
});
await check("results of tools are folded under their names", async () => {
  const lines = Array.from({ length: 30 }, (_, at) => `| line ${at}`).join("\n");
  await page.click("#new");
  await ask(`Why did it fail?\n\nresult of run:\n${lines}`, "ask");
  await page.locator(".king summary", { hasText: /^result of run 30 lines$/ }).waitFor();
  must(!(await page.isVisible(".king details.quoted pre")), "folded");
  await page.click(".king summary");
  must((await page.innerText(".king details.quoted pre")).startsWith("line 0\nline 1\n"), "its lines");
  await page.click("#stop");
});
await check("no script of the page failed, and nothing was fetched from elsewhere", async () => {
  must(page.faults.length === 0, page.faults.join(" | "));
  const out = page.asked.filter((url) => !url.startsWith(base));
  must(out.length === 0 && decided && token, out.join(" "));
});
await end();
fake.stop();
