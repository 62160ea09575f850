// The screens of the forum: all of it and one of its threads; what the user writes and decides there.

import { announce, make, one, parsed } from "./dom.js";
import { show } from "./reading.js";
import type { Server } from "./server.js";

/** Time between two looks at the forum, while a cycle runs and at other times, in milliseconds. */
const EVERY = 5000;
const EVERY_RUNNING = 1500;

/** Time for which the page says that something was done, in milliseconds. */
const TOLD = 5000;

/** What the kinds of motions do, for those that are not named alike. */
const KINDS: Record<string, string> = {
  set: "Change a setting",
  scheduler: "Take another scheduler",
  undo: "Undo a motion",
  keep: "Keep the rules",
  text: "Adopt a text",
  hide: "Hide a post",
  unhide: "Show a hidden post",
  close: "Close a thread",
  reopen: "Reopen a thread",
  ban: "Ban a member",
  unban: "Lift a ban",
  role: "Give a member a role",
  rule: "Change a rule of the forum",
};

/** Where the user's words are. */
interface Placed {
  thread: number;
  post: number | null;
  masked: string | null;
}

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
    one("#open").replaceChildren(make("p", { class: "faint" }, "Opening the forum …"));
    // A request that is turned away is not repeated: the page says why, or asks for the token.
    while (!signal.aborted && (await this.look(thread, signal))) {
      const runs = document.querySelector(".forum[data-running]");
      await new Promise((done) => setTimeout(done, runs ? EVERY_RUNNING : EVERY));
    }
    const place = document.querySelector("#open > p");
    if (place && !signal.aborted) place.textContent = one("#status").textContent;
  }

  /** Shows the state now. Returns whether to look again. */
  private async look(thread: string, signal: AbortSignal): Promise<boolean> {
    if (document.hidden && this.shown) return true;
    const path = thread ? `/page/forum/threads/${encodeURIComponent(thread)}` : "/page/forum";
    const response = await this.server.call(path, undefined, signal).catch(() => null);
    if (!response || signal.aborted) return response === null;
    const { html } = (await response.json()) as { html: string };
    // What the user is writing is not taken away.
    const writes = document.activeElement?.matches("#open .forum input") ?? false;
    if (signal.aborted || html === this.shown || (this.shown && writes)) return true;
    const page = parsed(html);
    const again = () => this.look(thread, signal);
    for (const motion of page.querySelectorAll<HTMLElement>("[data-motion][data-may]")) this.offer(motion, again);
    this.offerToWrite(page);
    for (const link of page.querySelectorAll<HTMLAnchorElement>('a[href^="?"]')) {
      link.onclick = (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.go(link.search);
      };
    }
    if (this.shown) this.keep(page);
    this.put(page, again);
    document.title = page.querySelector("h1")?.textContent ?? "Forum";
    const goal = !this.shown && location.hash ? document.getElementById(location.hash.slice(1)) : null;
    goal?.scrollIntoView({ behavior: "instant" });
    this.shown = html;
    return true;
  }

  /** Puts a newer state in the place of the former one. The reply below it stays. */
  private put(page: HTMLElement, again: () => Promise<unknown>): void {
    const place = one("#open");
    const former = this.shown ? place.querySelector(".forum") : null;
    if (former) former.replaceWith(page);
    else place.replaceChildren(page, ...(page.dataset.topic ? [this.replyForm(page.dataset.topic, again)] : []));
    const reply = place.querySelector<HTMLFormElement>("form.reply");
    if (reply) reply.hidden = !page.matches("[data-open]");
  }

  /** Takes over what is open and what was written in the former state. */
  private keep(page: HTMLElement): void {
    const former = one("#open");
    const open = [...former.querySelectorAll("details")].map((one) => one.open);
    [...page.querySelectorAll("details")].forEach((one, at) => (one.open = open[at] ?? one.open));
    for (const motion of page.querySelectorAll<HTMLElement>("[data-motion]")) {
      const old = former.querySelector<HTMLInputElement>(`[data-motion="${motion.dataset.motion}"] .decide input`);
      const now = motion.querySelector<HTMLInputElement>(".decide input");
      if (old && now) now.value = old.value;
    }
  }

  /** Gives a motion what the user can do about it. */
  private offer(motion: HTMLElement, again: () => Promise<unknown>): void {
    const may = motion.dataset.may;
    const reason = make("input", { type: "text", placeholder: "why", "aria-label": "Reason" });
    const button = (name: string, body: () => unknown) =>
      make("button", { type: "button", click: () => void this.decide(motion.dataset.motion ?? "", body(), again) }, name);
    const vote = (name: string, choice: string) => button(name, () => ({ decision: "vote", choice, reason: reason.value }));
    const deeds = may === "vote" ? [vote("Vote yes", "yes"), vote("Vote no", "no"), vote("Abstain", "abstain")] : may === "confirm" ? [button("Confirm", () => ({ decision: "confirm" }))] : [];
    motion.append(make("div", { class: "row decide" }, reason, ...deeds, button("Refuse", () => ({ decision: "refuse", reason: reason.value }))));
  }

  private async decide(motion: string, body: unknown, again: () => Promise<unknown>): Promise<void> {
    const got = await this.server.json<{ done: boolean }>(`/page/forum/motions/${motion}`, body);
    if (!got) return;
    announce(`Motion ${motion}: done.`);
    setTimeout(() => announce(""), TOLD);
    (document.activeElement as HTMLElement | null)?.blur();
    for (const field of document.querySelectorAll<HTMLInputElement>(`[data-motion="${motion}"] .decide input`)) field.value = "";
    await again();
  }

  /** Gives the page the buttons that begin a thread, a motion or a quote. */
  private offerToWrite(page: HTMLElement): void {
    const button = (name: string, click: () => void) => make("button", { type: "button", click }, name);
    page.querySelector("[data-new]")?.append(button("New thread", () => this.newThread()));
    const motions = page.querySelector<HTMLElement>("[data-forms]");
    motions?.append(button("Propose", () => this.newMotion((motions.dataset.forms ?? "").split(", "))));
    if (!page.matches("[data-open]")) return;
    for (const post of page.querySelectorAll<HTMLElement>("[data-post]")) {
      const tools = make("span", { class: "tools" }, button("Quote", () => this.quote(post.dataset.post ?? "", post.dataset.author ?? "")));
      const header = one("header", post);
      header.insertBefore(tools, header.querySelector(".seq"));
    }
  }

  /** Sends what the user wrote. `undefined` if it was refused, which the page says. */
  private async send(path: string, body: unknown): Promise<Placed | undefined> {
    announce("");
    const placed = await this.server.json<Placed>(path, body);
    if (placed) announce(placed.masked ?? "");
    else if (!one("#status").textContent) announce("The server is not there. What you wrote is still here.");
    return placed;
  }

  private newThread(): void {
    const title = make("input", { type: "text", required: true, autocomplete: "off" });
    const body = make("textarea", { rows: "8", required: true });
    this.write("New thread", [make("label", {}, "Title", title), make("label", {}, "First post (Markdown)", body)], "Post", async () => {
      const placed = await this.send("/page/forum/threads", { title: title.value, body: body.value });
      if (placed) this.go(`?forum=${placed.thread}`);
      return !!placed;
    });
  }

  private newMotion(forms: string[]): void {
    const kinds = new Map(forms.map((form) => [form.split(" ")[0] ?? form, form.split(" ").slice(1).join(" ")]));
    const kind = make("select", {}, ...[...kinds.keys()].map((word) => make("option", { value: word }, KINDS[word] ?? word)));
    kind.value = "text";
    const words = make("input", { type: "text", autocomplete: "off" });
    const what = make("label", {}, "", words);
    const fit = () => {
      const takes = kinds.get(kind.value) ?? "";
      what.hidden = !takes;
      words.required = !!takes;
      what.firstChild?.replaceWith(takes ? takes.charAt(0) + takes.slice(1).toLowerCase() : "");
    };
    kind.addEventListener("change", fit);
    fit();
    const reason = make("textarea", { rows: "4", required: true });
    const fields = [make("label", {}, "What it does", kind), what, make("label", {}, "Why", reason)];
    this.write("Propose a motion", fields, "Propose", async () => {
      const placed = await this.send("/page/forum/motions", { what: what.hidden ? kind.value : `${kind.value} ${words.value}`, reason: reason.value });
      if (placed) this.go("?forum");
      return !!placed;
    });
  }

  /** Shows fields above the page until `send` says that what is in them is in the forum. */
  private write(title: string, fields: HTMLElement[], word: string, send: () => Promise<boolean>): void {
    const button = make("button", { type: "submit", class: "primary" }, word);
    const submit = async (event: Event) => {
      event.preventDefault();
      button.disabled = true;
      const sent = await send();
      button.disabled = false;
      if (sent) dialog.close();
      else why.textContent = one("#status").textContent;
    };
    const why = make("p", { class: "bad", role: "status" });
    const form = make("form", { class: "write", submit: (event) => void submit(event) }, ...fields, why, button);
    const dialog = show(title, form);
    form.querySelector<HTMLElement>("input, textarea")?.focus();
  }

  /** The reply below a thread. */
  private replyForm(thread: string, again: () => Promise<unknown>): HTMLElement {
    const body = make("textarea", { rows: "3", required: true, "aria-label": "Reply", placeholder: "Reply as king (Markdown)" });
    const quotes = make("p", { class: "faint", hidden: true });
    const button = make("button", { type: "submit", class: "primary" }, "Reply");
    const form = make("form", { class: "reply write", hidden: true }, quotes, body, button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      button.disabled = true;
      const quote = form.dataset.quote ? Number(form.dataset.quote) : null;
      void this.send(`/page/forum/threads/${thread}`, { body: body.value, quote }).then(async (placed) => {
        button.disabled = false;
        if (!placed) return;
        body.value = "";
        this.unquote(form);
        await again();
        document.getElementById(`p${placed.post}`)?.scrollIntoView({ block: "nearest" });
      });
    });
    return form;
  }

  private quote(post: string, author: string): void {
    const form = one("form.reply");
    form.dataset.quote = post;
    const line = one("p", form);
    line.hidden = false;
    line.replaceChildren(`Quotes #${post} of `, make("bdi", {}, author), " ", make("button", { type: "button", click: () => this.unquote(form) }, "No quote"));
    one("textarea", form).focus();
  }

  private unquote(form: HTMLElement): void {
    delete form.dataset.quote;
    one("p", form).hidden = true;
  }
}
