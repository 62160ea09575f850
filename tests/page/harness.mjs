// What the tests of the page in Chromium share: a `kd serve` with its page, tabs, pictures, axe, and the count of checks.

import { chromium } from "playwright-core";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { once } from "node:events";
import path from "node:path";

const { KD: kd, SHOTS: shots, CHROMIUM } = process.env;
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Throws `why` unless it holds. */
export function must(holds, why) {
  if (!holds) throw new Error(why);
}

/** Serves a folder. `home` is the home folder of the program, if it is another one. */
export async function open(work, home = process.env.HOME) {
  const token = "0123456789abcdef0123456789abcdef";
  const server = spawn(kd, ["serve", "--page", "--listen", "127.0.0.1:0"], {
    cwd: work,
    env: { ...process.env, HOME: home, KD_SERVE_TOKEN: token },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [first] = await once(server.stdout, "data");
  const base = String(first).split("\n")[0].trim();
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  let passed = 0;
  let failed = 0;
  return {
    base,
    token,
    /** Runs a test, and counts it. */
    async check(what, test) {
      try {
        await test();
        passed += 1;
        console.log(`passed  ${what}`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED  ${what}: ${error.message.split("\n").slice(0, 6).join(" | ")}`);
      }
    },
    /** Opens a page, which notes what it asked for and what failed in it. */
    async tab(options = {}, to = `${base}#token=${token}`) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      const page = await context.newPage();
      page.asked = [];
      page.faults = [];
      page.on("request", (request) => page.asked.push(request.url()));
      page.on("pageerror", (error) => page.faults.push(error.message));
      await page.goto(to);
      return page;
    },
    /** Takes a picture, if pictures are wanted. */
    async shot(page, name) {
      if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`) });
    },
    /** What axe finds wrong, in words. The page's policy lets no other script in: the debugger's own way is used. */
    async axe(page) {
      await page.evaluate(axeSource);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" ; ")}`);
    },
    /** Ends all, and tells the count by the exit code, too. */
    async end() {
      await browser.close();
      server.kill("SIGTERM");
      await once(server, "exit");
      console.log(`${passed} passed, ${failed} failed`);
      if (failed > 0) process.exitCode = 1;
    },
  };
}
