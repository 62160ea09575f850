// The list of threads: the newest first, some at a time, forks below their sources; and the search over all messages.

import { make, one } from "./dom.js";
import type { Server } from "./server.js";

interface Listed {
  id: string;
  topic: string;
  messages: number;
  opened: string | null;
  fork: { of: string; left: string } | null;
  found: { seq: number; text: string } | null;
}

/** Changes within this time are fetched once, in milliseconds. */
const CHANGES_WITHIN = 700;
/** The pause of typing after which a search begins, in milliseconds. */
const TYPED = 250;

const time = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });

export class List {
  private soon: ReturnType<typeof setTimeout> | undefined;
  private threads: Listed[] = [];
  private more = false;
  /** The number of the newest request: answers to older ones are dropped. */
  private asked = 0;

  /** `open` opens a thread, at a message if there is one. */
  constructor(
    private server: Server,
    private current: () => string | undefined,
    private open: (id: string, at: string) => void,
  ) {
    one("#search").addEventListener("input", () => this.after(TYPED));
  }

  /** Fetches the list a moment after the last change. */
  changed(): void {
    this.after(CHANGES_WITHIN);
  }

  private after(wait: number): void {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => void this.fetch(), wait);
  }

  async fetch(skip = 0): Promise<void> {
    clearTimeout(this.soon);
    const number = ++this.asked;
    const words = one<HTMLInputElement>("#search").value.trim();
    const first = !words && skip === 0;
    const got = await this.server.json<{ threads: Listed[]; more: boolean }>(first ? "/page/threads" : "/page/search", first ? undefined : { words, skip });
    if (!got || number !== this.asked) return;
    this.threads = skip === 0 ? got.threads : [...this.threads, ...got.threads];
    this.more = got.more;
    const rows = words ? this.threads.map((thread) => make("li", {}, this.link(thread))) : this.asTree();
    if (words && rows.length === 0) rows.push(make("li", { class: "faint" }, "No message has these words."));
    if (this.more) rows.push(make("li", {}, make("button", { type: "button", class: "more", click: () => void this.fetch(this.threads.length) }, "Older threads")));
    one("#list").replaceChildren(...rows);
  }

  /** Marks the open thread. */
  mark(): void {
    const id = this.current();
    for (const link of document.querySelectorAll<HTMLAnchorElement>("#list a")) {
      if (id && link.search === `?thread=${encodeURIComponent(id)}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  private link(thread: Listed): HTMLElement {
    const at = thread.found ? `#m${thread.found.seq}` : "";
    const facts = [thread.opened ? time.format(new Date(thread.opened)) : "", `${thread.messages} ${thread.messages === 1 ? "message" : "messages"}`, thread.id, thread.fork ? `fork ${thread.fork.left}` : ""];
    const link = make(
      "a",
      {
        href: `?thread=${encodeURIComponent(thread.id)}${at}`,
        title: thread.opened ?? false,
        click: (event) => {
          const mouse = event as MouseEvent;
          if (mouse.ctrlKey || mouse.metaKey || mouse.shiftKey) return;
          event.preventDefault();
          this.open(thread.id, at);
        },
      },
      make("span", { class: "topic", dir: "auto" }, thread.topic.replace(/^#+\s*/, "") || "(no messages yet)"),
      ...(thread.found ? [make("span", { class: "found", dir: "auto" }, thread.found.text)] : []),
      make("span", { class: "faint" }, facts.filter((fact) => fact).join(" · ")),
    );
    if (thread.id === this.current()) link.setAttribute("aria-current", "page");
    return link;
  }

  /** Nests forks below the threads they came from. Files may claim a circle: each thread is shown once. */
  private asTree(): HTMLElement[] {
    const threads = this.threads;
    const known = new Set(threads.map((thread) => thread.id));
    const shown = new Set<string>();
    const rows = (some: Listed[]): HTMLElement[] =>
      some.flatMap((thread) => {
        if (shown.has(thread.id)) return [];
        shown.add(thread.id);
        const item = make("li", {}, this.link(thread));
        const below = rows(threads.filter((other) => other.fork?.of === thread.id).reverse());
        if (below.length > 0) item.append(make("ol", {}, ...below));
        return [item];
      });
    return [...rows(threads.filter((thread) => !thread.fork || !known.has(thread.fork.of))), ...rows(threads)];
  }
}
