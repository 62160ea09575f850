// The server's page: one open thread that grows, beside the list of threads and above the question to the council.

import { Deeds } from "./deeds.js";
import { announce, make, one, painted, parsed } from "./dom.js";
import { Form } from "./form.js";
import { Forum } from "./forum.js";
import { List } from "./list.js";
import { equip, follow, type Words } from "./reading.js";
import { Server, threadPath } from "./server.js";

/** A line of a thread's stream. */
interface Line {
  thread?: string;
  parts?: { id: string; html: string }[];
  words?: Record<string, string>;
  more?: boolean;
  seat?: string;
  text?: string;
  state?: string;
  again?: boolean;
  ended?: string;
}

/** An answer on its way. */
interface Growing {
  card: HTMLElement;
  body: HTMLElement;
  state: HTMLElement;
}

/** The longest wait before a stream that broke off is opened again, in milliseconds. */
const AGAIN_MAX = 8000;

/** Time between two looks at the batches, in milliseconds. */
const BATCHES_EVERY = 2000;
/** Characters after which a growing line gets a further text node, so that only the last one is shaped again. */
const NODE_MAX = 200;
/** The sections in the order of the page. */
const ORDER = ["head", "nav", "said", "decided", "differ", "sure", "record"];

export class Live {
  private stream: AbortController | undefined;
  private id: string | undefined;
  /** Answers on their way, by member. */
  private growing = new Map<string, Growing>();
  /** Answers that have ended, until the thread has them. */
  private ended: HTMLElement[] = [];
  /** What the address named when it was last shown. */
  private shown = "";
  private painted = false;
  /** Whether members are being asked. */
  private busy = false;
  /** Whether messages in the middle of the thread are still to come. */
  private filling = false;
  /** The message that the address names, until it is there. */
  private goal = "";
  private server = new Server(() => this.begin(), painted());
  private list: List;
  private form: Form;
  private deeds: Deeds;
  private forum = new Forum(this.server, (search) => this.address(search));

  constructor(private words: Words) {
    const current = () => this.id;
    this.list = new List(this.server, current, (id, at) => this.go(id, at));
    this.form = new Form(this.server, current, (thread) => {
      if (thread !== this.id) this.go(thread);
      this.list.changed();
    });
    this.deeds = new Deeds(this.server, current, (id) => this.go(id), () => this.list.changed());
    one("#new").addEventListener("click", () => this.go(undefined));
    one("#batches").addEventListener("click", () => this.address("?batches"));
    one("#forum").addEventListener("click", () => this.address("?forum"));
    one("#stop").addEventListener("click", () => void this.deeds.stop());
    document.addEventListener("merge", (event) => this.form.draft((event as CustomEvent<string>).detail));
    addEventListener("popstate", () => {
      // A link to a place in the open thread comes here, too.
      if (location.search !== this.shown) this.show();
    });
    addEventListener("focus", () => this.list.changed());
    this.server.begin();
  }

  private begin(): void {
    void this.list.fetch();
    void this.form.fetch();
    this.show();
  }

  /** Shows what the address names: a thread, the batches, the forum, or a new thread. */
  private show(): void {
    this.open(this.named());
    const query = new URLSearchParams(location.search);
    const forum = query.get("forum");
    // There, what is written goes elsewhere.
    one("#ask").hidden = forum !== null;
    if (forum === null && !query.has("batches")) return;
    const watch = new AbortController();
    this.stream = watch;
    void (forum === null ? this.watchBatches(watch.signal) : this.forum.watch(forum, watch.signal));
  }

  /** Shows an address of the page. */
  private address(search: string): void {
    history.pushState(null, "", search);
    this.show();
  }

  /** Shows the batches, and how they go on. */
  private async watchBatches(signal: AbortSignal): Promise<void> {
    let shown = "";
    while (!signal.aborted) {
      const response = document.hidden && shown ? null : await this.server.call("/page/batches", undefined, signal).catch(() => null);
      // One that is turned away is not repeated: the page says why, or asks for the token.
      if (signal.aborted || response === undefined) return;
      if (response) {
        const { html } = (await response.json()) as { html: string };
        if (signal.aborted) return;
        if (html !== shown) one("#open").replaceChildren(parsed(html));
        shown = html;
        document.title = "Batches";
      }
      await new Promise((done) => setTimeout(done, BATCHES_EVERY));
    }
  }

  /** The thread that the address names. */
  private named(): string | undefined {
    return new URLSearchParams(location.search).get("thread") ?? undefined;
  }

  private go(id: string | undefined, at = ""): void {
    history.pushState(null, "", id ? `?thread=${encodeURIComponent(id)}${at}` : location.pathname);
    this.open(id);
    if (!at) one("#question").focus();
  }

  private open(id: string | undefined): void {
    this.stream?.abort();
    this.shown = location.search;
    this.growing.clear();
    this.ended = [];
    this.words.clear();
    this.id = id;
    this.painted = false;
    this.busy = false;
    this.goal = location.hash.slice(1);
    this.filling = false;
    one("#stop").hidden = true;
    one("#ask").hidden = false;
    this.list.mark();
    this.form.reset();
    if (!id) {
      one("#open").replaceChildren(
        make("div", { class: "welcome" }, make("h1", {}, "Ask the council"), make("p", { class: "faint" }, "Members answer side by side. What they say, and how it was decided, stays here."), make("p", { class: "asks" })),
      );
      this.form.welcome();
      return;
    }
    const place = make("p", { class: "faint" }, `Opening ${id} …`);
    one("#open").replaceChildren(place);
    const stream = new AbortController();
    this.stream = stream;
    void this.listen(id, stream.signal).then(() => {
      // Only a refusal ends it while nothing was shown yet.
      if (place.isConnected) place.textContent = `${id} could not be opened.`;
    });
  }

  /** Reads a thread's stream, and opens it again where it breaks off. */
  private async listen(id: string, signal: AbortSignal): Promise<void> {
    let wait = 250;
    while (!signal.aborted) {
      try {
        const response = await this.server.call(threadPath(id), undefined, signal);
        if (!response?.body) return;
        // Growing answers are sent again.
        this.forgetGrowing();
        announce("");
        wait = 250;
        let rest = "";
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          const lines = (rest + value).split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) {
            if (!line || signal.aborted) continue;
            const heard = JSON.parse(line) as Line;
            this.hear(heard);
            // Paints what is there before the rest of a long thread.
            if (heard.more && !document.hidden) await new Promise((done) => setTimeout(done));
          }
        }
      } catch (error) {
        if (signal.aborted) return;
        console.warn(error);
      }
      announce("The server is not there; trying again …");
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, AGAIN_MAX);
    }
  }

  private hear(line: Line): void {
    if (line.parts) this.place(line);
    if (line.ended) this.end(line.ended);
    if (!line.seat) return;
    const answer = this.grow(line.seat);
    if (line.again) answer.body.replaceChildren();
    if (line.state) answer.state.textContent = line.state;
    if (line.text) {
      answer.state.textContent = "";
      this.extend(answer.body, line.text);
    }
  }

  /** Adds a piece to a growing answer. A finished line is a block that is not laid out again. */
  private extend(body: HTMLElement, piece: string): void {
    const [first = "", ...lines] = piece.split("\n");
    const open = body.lastElementChild ?? body.appendChild(make("div"));
    const end = open.lastChild;
    if (end instanceof Text && end.length < NODE_MAX) end.appendData(first);
    else open.append(first);
    for (const line of lines) body.append(make("div", {}, line));
  }

  /** Puts parts in the place of their former state. */
  private place(line: Line): void {
    const home = one("#open");
    let thread = home.querySelector<HTMLElement>("article.thread");
    if (!thread || thread.dataset.thread !== line.thread) {
      thread = make("article", { class: "thread", "data-thread": line.thread ?? "" });
      const said = make("section", { id: "said", "aria-labelledby": "said-title" }, make("h2", { id: "said-title" }, "Who said what"));
      thread.append(said);
      home.replaceChildren(thread);
    }
    for (const [id, words] of Object.entries(line.words ?? {})) this.words.set(id, words);
    const filling = line.more || this.filling;
    const atEnd = this.painted && !filling && this.isAtEnd();
    let sections = false;
    for (const part of line.parts ?? []) {
      const element = parsed(part.html);
      equip(element, this.words);
      this.deeds.offerForks(element);
      this.put(thread, part.id, element);
      sections ||= ORDER.includes(part.id);
    }
    for (const card of this.ended.splice(0)) card.remove();
    this.seat();
    this.deeds.offerOnNewest(thread);
    if (sections) {
      this.deeds.offerMore(thread);
      const busy = thread.querySelector("#head .now") !== null;
      if (this.busy && !busy) this.list.changed();
      this.busy = busy;
      follow(thread);
      document.title = thread.querySelector("h1")?.textContent ?? "kd";
    }
    if (filling) announce(line.more ? "Loading earlier messages …" : "");
    this.filling = line.more ?? false;
    const goal = this.goal && document.getElementById(this.goal);
    if (goal) {
      // What is above is not laid out yet, so that a smooth way would miss it.
      goal.scrollIntoView({ behavior: "instant" });
      this.goal = "";
    } else if (atEnd) this.toEnd();
    this.painted = true;
  }

  private put(thread: HTMLElement, id: string, element: HTMLElement): void {
    const old = thread.querySelector(`#${CSS.escape(id)}`);
    if (old) {
      // Keep open what the reader opened.
      const open = [...old.querySelectorAll("details")].map((d) => d.open);
      [...element.querySelectorAll("details")].forEach((d, at) => (d.open = open[at] ?? d.open));
      old.replaceWith(element);
      return;
    }
    if (!ORDER.includes(id)) {
      // Rounds are in the order of their numbers; those in the middle of a long thread come last.
      const number = (round: Element | null) => Number(round?.id.slice(1));
      let before = one("#said", thread).lastElementChild;
      while (number(before) > number(element)) before = before?.previousElementSibling ?? null;
      before?.after(element);
      return;
    }
    const later = ORDER.slice(ORDER.indexOf(id) + 1).map((next) => thread.querySelector(`:scope > #${next}`));
    thread.insertBefore(element, later.find((next) => next !== null) ?? null);
  }

  private grow(seat: string): Growing {
    const known = this.growing.get(seat);
    if (known) return known;
    const name = [...document.querySelectorAll<HTMLElement>("#head .members .name")].find((n) => n.textContent?.endsWith(seat));
    const state = make("span", { class: "faint" });
    const body = make("div", { class: "body growing", dir: "auto" });
    const card = make(
      "article",
      { class: `says ${[...(name?.classList ?? [])].find((c) => /^c\d$/.test(c)) ?? ""}` },
      make(
        "header",
        {},
        name ? name.cloneNode(true) : make("bdi", { class: "name" }, seat),
        state,
        make("span", { class: "facts" }),
        make("button", { type: "button", title: `Stop ${seat}`, click: () => void this.deeds.stop(seat) }, "Stop"),
      ),
      body,
    );
    const answer = { card, body, state };
    this.growing.set(seat, answer);
    this.seat();
    one("#stop").hidden = false;
    return answer;
  }

  /** Puts answers on their way beside those that are there, at the end of the last round. */
  private seat(): void {
    if (this.growing.size === 0) return;
    const said = one("#said");
    let round = said.querySelector<HTMLElement>(":scope > .round:last-of-type");
    if (!round) {
      round = make("div", { class: "round" });
      said.append(round);
    }
    let place = round.lastElementChild;
    if (!place?.matches(".answers")) {
      place = make("div", { class: "answers" });
      round.append(place);
    }
    for (const { card } of this.growing.values()) if (card.parentElement !== place) place.append(card);
  }

  /** The answer stays until the thread has it, or something else instead. */
  private end(seat: string): void {
    const answer = this.growing.get(seat);
    if (!answer) return;
    answer.card.querySelector("header > button")?.remove();
    answer.body.classList.remove("growing");
    answer.body.classList.add("grown");
    this.ended.push(answer.card);
    this.growing.delete(seat);
    if (this.growing.size === 0) one("#stop").hidden = true;
  }

  private forgetGrowing(): void {
    for (const seat of [...this.growing.keys()]) {
      this.growing.get(seat)?.card.remove();
      this.growing.delete(seat);
    }
    for (const card of this.ended.splice(0)) card.remove();
    one("#stop").hidden = true;
  }

  private isAtEnd(): boolean {
    const top = document.documentElement;
    return top.scrollHeight - top.scrollTop - top.clientHeight < 120;
  }

  private toEnd(): void {
    document.documentElement.scrollTop = document.documentElement.scrollHeight;
  }
}
