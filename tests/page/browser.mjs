// The page in Chromium, unchanged, against `kd serve` with members that play scripts.
//
//     node browser.mjs FOLDER        [KD: the program, CHROMIUM: the browser, SHOTS: a folder for pictures]

import { execFileSync } from "node:child_process";
import path from "node:path";
import { ask as askAsPage, thread as longThread } from "./figures-home.mjs";
import { must, open } from "./harness.mjs";

const work = process.argv[2];
const kd = process.env.KD;
const run = (...args) => execFileSync(kd, args, { cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const { base, token, check, tab, shot, axe, end } = await open(work);
async function ask(page, question, method = "ask") {
  await page.fill("#question", question);
  await page.selectOption("#method", method);
  await page.click("#send");
}

const page = await tab();
let thread;
await check("the token of the link opens the page and leaves the address", async () => {
  await page.waitForSelector("#ask");
  must(!page.url().includes("token"), page.url());
});
await check("a question is answered side by side, and concluded", async () => {
  await ask(page, "Tabs or **spaces**?");
  await page.waitForSelector(".concludes", { timeout: 30_000 });
  thread = new URL(page.url()).searchParams.get("thread");
  must(thread, page.url());
  const boxes = await page.locator(".answers > .says").evaluateAll((all) => all.map((e) => e.getBoundingClientRect().toJSON()));
  must(boxes.length === 2 && boxes[0].top === boxes[1].top && boxes[0].right <= boxes[1].left, JSON.stringify(boxes));
  must((await page.locator(".king strong").textContent()) === "spaces", "Markdown is rendered");
  await shot(page, "asked");
});
await check("another tab sees the same thread, and what is asked there is seen here", async () => {
  const other = await tab({}, `${base}?thread=${thread}#token=${token}`);
  await other.waitForSelector(".concludes");
  await ask(other, "And in Makefiles?");
  const both = [page, other].map((p) => p.waitForFunction(() => document.querySelectorAll(".round").length === 2 && document.querySelectorAll(".concludes").length === 2));
  await Promise.all(both);
  const [here, there] = await Promise.all([page, other].map((p) => p.locator("#said").innerText()));
  must(here === there, `${here}\n---\n${there}`);
  await other.context().close();
});
await check("what another program asks in the thread is seen here", async () => {
  run("ask", "--thread", thread, "From a shell?");
  await page.waitForSelector("text=From a shell?", { timeout: 30_000 });
});
await check("a reload shows the same again", async () => {
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll(".round").length === 3);
});
await check("hostile content does nothing and fetches nothing", async () => {
  const hostile = '<script>window.hit=1</script><img src="https://evil.example/x.png" onerror="window.hit=2"> [x](javascript:window.hit=3) ![p](https://evil.example/p.png)\n\n<style>*{display:none}</style>\n\n\u202eright to left\u202c \ud83d\udc69\u200d\ud83d\udcbb';
  await ask(page, hostile);
  await page.waitForFunction(() => document.querySelectorAll(".round").length === 4);
  await page.waitForTimeout(300);
  must((await page.evaluate(() => window.hit)) === undefined, "a script ran");
  must(await page.isVisible("#ask"), "a style took hold");
  const out = page.asked.filter((url) => !url.startsWith(base));
  must(out.length === 0, out.join(" "));
  must((await page.locator(".says a[href^='javascript'], .king a[href^='javascript']").count()) === 0, "a link of a script");
});
await check("a thread that does not exist, and an unknown token, are told", async () => {
  const lost = await tab({}, `${base}?thread=council-none#token=${token}`);
  await lost.waitForFunction(() => document.querySelector("#status").textContent.includes("council-none"));
  await lost.context().close();
  const stranger = await tab({}, `${base}#token=0000000000000000`);
  await stranger.waitForSelector("text=does not know this token");
  await stranger.context().close();
});
await check("a question is taken back into a fork, shown below its source", async () => {
  const p = await tab({}, `${base}?thread=${thread}#token=${token}`);
  await p.waitForSelector(".round");
  const kings = p.locator("article.king");
  const last = kings.nth((await kings.count()) - 1);
  must((await kings.nth(0).locator(".fork").count()) === 0, "nothing comes before the first question");
  await last.locator(".fork", { hasText: "Rewind" }).click();
  await p.waitForFunction((old) => new URLSearchParams(location.search).get("thread") !== old, thread);
  await p.waitForFunction(() => document.querySelectorAll(".round").length === 3);
  const fork = await p.evaluate(() => new URLSearchParams(location.search).get("thread"));
  await p.waitForSelector(`#list li li a[href="?thread=${fork}"]`);
  must((await p.locator(".tree li li b").innerText()) === fork, "the fork is below its source in the tree");
  await shot(p, "fork");
  const found = await axe(p);
  must(found.length === 0, found.join(" || "));
  await p.locator(".tree a").first().click();
  await p.waitForFunction(() => document.querySelectorAll(".round").length === 4);
  must((await p.evaluate(() => new URLSearchParams(location.search).get("thread"))) === thread, "its source");
  must(p.faults.length === 0, p.faults.join(" "));
  await p.context().close();
});
await check("a fork at a stage of a deliberation is finished by its button, and an exported one shows the command", async () => {
  const p = await tab();
  await p.waitForSelector("#ask");
  await ask(p, "Tabs or spaces? Answer with one of: tabs, spaces", "deliberate");
  await p.waitForSelector("#decided", { timeout: 30_000 });
  const source = await p.evaluate(() => new URLSearchParams(location.search).get("thread"));
  await p.waitForFunction(() => document.querySelector("#record")?.textContent.includes("events agree byte for byte") && !document.querySelector("[data-resume]"));
  must((await p.locator("#record button", { hasText: "Resume" }).count()) === 0, "it has ended");
  await p.locator("details[data-stage] > .fork").last().evaluate((button) => {
    button.closest("details").open = true;
    button.click();
  });
  await p.waitForFunction((old) => new URLSearchParams(location.search).get("thread") !== old, source);
  await p.waitForSelector("#record [data-resume] button");
  const fork = await p.evaluate(() => new URLSearchParams(location.search).get("thread"));
  const found = await axe(p);
  must(found.length === 0, found.join(" || "));
  await shot(p, "resume");
  run("export", fork, "-o", "fork.html");
  const file = await tab({}, `file://${path.join(work, "fork.html")}`);
  must((await file.innerText("#record")).includes(`kd deliberate --resume ${fork}`), "the command");
  must((await file.locator("[data-resume] button").count()) === 0, "no button in a file");
  await file.context().close();
  await p.locator("#record [data-resume] button").click();
  await p.waitForSelector("[data-resume]", { state: "detached", timeout: 30_000 });
  must((await p.innerText("#record")).includes("events agree byte for byte"), "one record");
  must(p.faults.length === 0, p.faults.join(" "));
  await p.context().close();
});
await check("axe finds nothing, in light and in dark, wide and narrow", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      const p = await tab({ colorScheme, viewport: { width, height: 800 } }, `${base}?thread=${thread}#token=${token}`);
      await p.waitForSelector(".round");
      const found = await axe(p);
      await shot(p, `${colorScheme}-${width}`);
      must(found.length === 0, `${colorScheme} ${width}: ${found.join(" || ")}`);
      const wide = await p.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      must(wide <= 0, `${width}: ${wide} pixels too wide`);
      await p.context().close();
    }
  }
});
await check("a long thread is complete, in order, with its buttons, and opens at the message of the address", async () => {
  const id = await longThread(base.replace(/\/$/, ""), { cwd: work }, 700, "ann");
  const p = await tab({}, `${base}?thread=${id}#token=${token}`);
  await p.waitForFunction(() => document.querySelectorAll("article[data-seq]").length === 700);
  const seen = await p.locator("article[data-seq]").evaluateAll((all) => all.map((one) => Number(one.dataset.seq)));
  must(seen.every((seq, at) => seq === at + 1), seen.join(" "));
  const count = (selector) => p.locator(selector).count();
  must((await count("header > .tools")) === 700 && (await count(".tools > .fork")) === 699, "buttons, once each");
  must((await p.textContent("#status")) === "", "nothing is loading");
  await p.goto("about:blank");
  await p.goto(`${base}?thread=${id}#m350`);
  await p.waitForFunction(() => document.querySelectorAll("article[data-seq]").length === 700);
  await p.waitForFunction(() => {
    const { top, bottom } = document.getElementById("m350").getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  must(p.faults.length === 0, p.faults.join(" "));
  await p.context().close();
});
await check("a growing answer has its lines, and stops", async () => {
  const p = await tab({}, `${base}?thread=${thread}#token=${token}`);
  await p.waitForSelector(".round");
  await askAsPage(base.replace(/\/$/, ""), { question: "Slowly?", members: ["sam"], thread });
  await p.waitForFunction(() => document.querySelector(".growing")?.textContent.endsWith("three"));
  const lines = await p.locator(".growing > div").evaluateAll((all) => all.map((line) => [line.textContent, line.offsetHeight > 0]));
  must(JSON.stringify(lines) === JSON.stringify([["one", true], ["", true], ["two", true], ["  three", true]]), JSON.stringify(lines));
  await p.click("article:has(.growing) >> text=Stop");
  await p.waitForSelector(".growing", { state: "detached" });
  must(p.faults.length === 0, p.faults.join(" "));
  await p.context().close();
});
await check("an exported thread reads without a script, from a file", async () => {
  run("export", thread, "-o", "thread.html");
  const file = `file://${path.join(work, "thread.html")}`;
  const plain = await tab({ javaScriptEnabled: false }, file);
  must((await plain.locator(".round").count()) === 5, "rounds");
  must((await plain.innerText("#record")).includes(thread), "the record");
  await shot(plain, "export");
  await plain.context().close();
  const whole = await tab({}, file);
  must(whole.asked.every((url) => url === file), whole.asked.join(" "));
  await whole.locator(".tools input").nth(0).check();
  await whole.locator(".tools input").nth(1).check();
  await whole.click("#picked >> text=Compare");
  must((await whole.locator("dialog .two > article").count()) === 2, "two side by side");
  await whole.keyboard.press("Escape");
  await whole.waitForSelector("dialog", { state: "detached" });
  const found = await axe(whole);
  must(found.length === 0, found.join(" || "));
  await whole.context().close();
});
await check("no script of the page failed", async () => {
  must(page.faults.length === 0, page.faults.join(" | "));
});

await end();
