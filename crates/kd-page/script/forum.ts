// The screens of the forum: all of it, one of its threads, and the user's decisions on motions.

import { announce, make, one, parsed } from "./dom.js";
import type { Server } from "./server.js";

/** Time between two looks at the forum, in milliseconds. */
const EVERY = 5000;

export class Forum {
  private shown = "";

  /** `go` shows an address of the page. */
  constructor(
    private server: Server,
    private go: (search: string) => void,
  ) {}

  /** Shows the forum, or a thread of it, and how it goes on. */
  async watch(thread: string, signal: AbortSignal): Promise<void> {
    this.shown = "";
    while (!signal.aborted) {
      await this.look(thread, signal);
      await new Promise((done) => setTimeout(done, EVERY));
    }
  }

  private async look(thread: string, signal: AbortSignal): Promise<void> {
    const path = thread ? `/page/forum/threads/${encodeURIComponent(thread)}` : "/page/forum";
    const response = await this.server.call(path, undefined, signal).catch(() => undefined);
    if (!response || signal.aborted) return;
    const { html } = (await response.json()) as { html: string };
    // What the user is writing is not taken away.
    const writes = document.activeElement?.matches("#open input") ?? false;
    if (signal.aborted || html === this.shown || (this.shown && writes)) return;
    const page = parsed(html);
    const open = [...document.querySelectorAll<HTMLDetailsElement>("#open details")].map((one) => one.open);
    if (this.shown) [...page.querySelectorAll("details")].forEach((one, at) => (one.open = open[at] ?? one.open));
    for (const motion of page.querySelectorAll<HTMLElement>("[data-motion][data-may]")) this.offer(motion, () => this.look(thread, signal));
    for (const link of page.querySelectorAll<HTMLAnchorElement>('a[href^="?"]')) {
      link.onclick = (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.go(link.search);
      };
    }
    one("#open").replaceChildren(page);
    document.title = page.querySelector("h1")?.textContent ?? "Forum";
    const goal = !this.shown && location.hash ? document.getElementById(location.hash.slice(1)) : null;
    goal?.scrollIntoView({ behavior: "instant" });
    this.shown = html;
  }

  /** Gives a motion what the user can do about it. */
  private offer(motion: HTMLElement, again: () => Promise<void>): void {
    const may = motion.dataset.may;
    const reason = make("input", { type: "text", placeholder: "why", "aria-label": "Reason" });
    const button = (name: string, body: () => unknown) =>
      make("button", { type: "button", click: () => void this.decide(motion.dataset.motion ?? "", body(), again) }, name);
    const vote = (name: string, choice: string) => button(name, () => ({ decision: "vote", choice, reason: reason.value }));
    const deeds = may === "vote" ? [vote("Vote yes", "yes"), vote("Vote no", "no"), vote("Abstain", "abstain")] : may === "confirm" ? [button("Confirm", () => ({ decision: "confirm" }))] : [];
    motion.append(make("div", { class: "row decide" }, reason, ...deeds, button("Refuse", () => ({ decision: "refuse", reason: reason.value }))));
  }

  private async decide(motion: string, body: unknown, again: () => Promise<void>): Promise<void> {
    const got = await this.server.json<{ done: boolean }>(`/page/forum/motions/${motion}`, body);
    if (!got) return;
    announce("Done.");
    (document.activeElement as HTMLElement | null)?.blur();
    this.shown = "";
    await again();
  }
}
