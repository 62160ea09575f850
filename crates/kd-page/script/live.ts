// The server's page: the list of threads, one open thread that grows, and the question to the council.

import { announce, make, one, painted, parsed } from "./dom.js";
import { equip, follow, type Words } from "./reading.js";

interface Listed {
  id: string;
  topic: string;
  messages: number;
  fork: { of: string; left: string } | null;
}

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

/** Where a fork leaves its source; empty for all of it. */
interface Cut {
  before?: number;
  stage?: string;
}

const TOKEN = "kd-token";
/** The longest wait before a stream that broke off is opened again, in milliseconds. */
const AGAIN_MAX = 8000;

/** Time between two looks at the batches, in milliseconds. */
const BATCHES_EVERY = 2000;
/** Characters after which a growing line gets a further text node, so that only the last one is shaped again. */
const NODE_MAX = 200;
/** The sections in the order of the page. */
const ORDER = ["head", "nav", "said", "decided", "differ", "sure", "record"];

export class Live {
  private token: string;
  private stream: AbortController | undefined;
  private id: string | undefined;
  /** Answers on their way, by member. */
  private growing = new Map<string, Growing>();
  private painted = false;
  /** Whether messages in the middle of the thread are still to come. */
  private filling = false;
  /** The message that the address names, until it is there. */
  private goal = "";
  /** The first frame: what is fetched before it would delay it. */
  private shell = painted();

  constructor(private words: Words) {
    this.token = this.claimToken();
    one("#new").addEventListener("click", () => this.go(undefined));
    one("#batches").addEventListener("click", () => {
      history.pushState(null, "", "?batches");
      this.show();
    });
    one("#stop").addEventListener("click", () => void this.stop());
    const form = one<HTMLFormElement>("#ask");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.ask();
    });
    one("#question").addEventListener("keydown", (event) => {
      const key = event as KeyboardEvent;
      if (key.key === "Enter" && (key.ctrlKey || key.metaKey)) form.requestSubmit();
    });
    addEventListener("popstate", () => this.show());
    addEventListener("focus", () => void this.list());
    if (this.token) this.begin();
    else this.enter("");
  }

  private begin(): void {
    void this.list();
    this.show();
  }

  /** Shows what the address names: a thread, the batches, or a new thread. */
  private show(): void {
    this.open(this.named());
    if (!new URLSearchParams(location.search).has("batches")) return;
    const watch = new AbortController();
    this.stream = watch;
    void this.watchBatches(watch.signal);
  }

  /** Shows the batches, and how they go on. */
  private async watchBatches(signal: AbortSignal): Promise<void> {
    let shown = "";
    while (!signal.aborted) {
      const response = await this.call("/page/batches", undefined, signal).catch(() => undefined);
      if (signal.aborted) return;
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

  /** The token of the link that the server printed; it does not stay in the address. */
  private claimToken(): string {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) {
      sessionStorage.setItem(TOKEN, given);
      history.replaceState(null, "", location.pathname + location.search);
    }
    return given ?? sessionStorage.getItem(TOKEN) ?? "";
  }

  /** Asks for the token. */
  private enter(why: string): void {
    const field = make("input", { type: "password", autocomplete: "off", required: true, "aria-label": "Token" });
    const form = make(
      "form",
      {
        class: "welcome",
        submit: (event) => {
          event.preventDefault();
          this.token = field.value.trim();
          sessionStorage.setItem(TOKEN, this.token);
          one("#open").replaceChildren();
          this.begin();
        },
      },
      make("h1", {}, "Token"),
      make("p", { class: why ? "bad" : "faint" }, why || "kd serve printed it when it started."),
      field,
      make("button", { type: "submit" }, "Open"),
    );
    one("#open").replaceChildren(form);
    field.focus();
  }

  /** A request to the server. `undefined` where it was turned away: then the page says so. */
  private async call(path: string, body?: unknown, signal?: AbortSignal): Promise<Response | undefined> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.token}` };
    const init: RequestInit = { headers };
    if (signal) init.signal = signal;
    if (body !== undefined) {
      init.method = "POST";
      init.body = JSON.stringify(body);
      headers["content-type"] = "application/json";
    }
    await this.shell;
    const response = await fetch(path, init);
    if (response.ok) return response;
    if (response.status === 401) {
      this.enter("The server does not know this token.");
      return undefined;
    }
    const told = (await response.json().catch(() => ({}))) as { error?: string };
    announce(told.error ?? `The server answered ${response.status}.`);
    return undefined;
  }

  private async list(): Promise<void> {
    const response = await this.call("/page/threads").catch(() => undefined);
    if (!response) return;
    const { threads } = (await response.json()) as { threads: Listed[] };
    const row = (thread: Listed): HTMLElement => {
      const link = make(
        "a",
        {
          href: `?thread=${encodeURIComponent(thread.id)}`,
          click: (event) => {
            const mouse = event as MouseEvent;
            if (mouse.ctrlKey || mouse.metaKey || mouse.shiftKey) return;
            event.preventDefault();
            this.go(thread.id);
          },
        },
        make("span", { class: "topic", dir: "auto" }, thread.topic.replace(/^#+\s*/, "") || "(no messages yet)"),
        make("span", { class: "faint" }, `${thread.id} · ${thread.messages} ${thread.messages === 1 ? "message" : "messages"}${thread.fork ? ` · fork ${thread.fork.left}` : ""}`),
      );
      if (thread.id === this.id) link.setAttribute("aria-current", "page");
      return make("li", {}, link);
    };
    one("#list").replaceChildren(...this.asTree(threads, row));
  }

  /** Nests forks below the threads they came from. Files may claim a circle: each thread is shown once. */
  private asTree(threads: Listed[], row: (thread: Listed) => HTMLElement): HTMLElement[] {
    const known = new Set(threads.map((thread) => thread.id));
    const shown = new Set<string>();
    const rows = (some: Listed[]): HTMLElement[] =>
      some.flatMap((thread) => {
        if (shown.has(thread.id)) return [];
        shown.add(thread.id);
        const item = row(thread);
        const below = rows(threads.filter((other) => other.fork?.of === thread.id).reverse());
        if (below.length > 0) item.append(make("ol", {}, ...below));
        return [item];
      });
    return [...rows(threads.filter((thread) => !thread.fork || !known.has(thread.fork.of))), ...rows(threads)];
  }

  private go(id: string | undefined): void {
    history.pushState(null, "", id ? `?thread=${encodeURIComponent(id)}` : location.pathname);
    this.open(id);
    one("#question").focus();
  }

  private open(id: string | undefined): void {
    this.stream?.abort();
    this.growing.clear();
    this.words.clear();
    this.id = id;
    this.painted = false;
    this.goal = location.hash.slice(1);
    this.filling = false;
    one("#stop").hidden = true;
    for (const link of document.querySelectorAll<HTMLAnchorElement>("#list a")) {
      if (id && link.search === `?thread=${encodeURIComponent(id)}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!id) {
      one("#open").replaceChildren(
        make("div", { class: "welcome" }, make("h1", {}, "Ask the council"), make("p", { class: "faint" }, "Members answer side by side. What they say, and how it was decided, stays here.")),
      );
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
        const response = await this.call(`/page/threads/${encodeURIComponent(id)}`, undefined, signal);
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
      this.offerForks(element);
      this.put(thread, part.id, element);
      sections ||= ORDER.includes(part.id);
    }
    this.seat();
    if (sections) {
      this.offerMore(thread);
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
        make("button", { type: "button", title: `Stop ${seat}`, click: () => void this.stop(seat) }, "Stop"),
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

  private end(seat: string): void {
    this.growing.get(seat)?.card.remove();
    this.growing.delete(seat);
    if (this.growing.size === 0) {
      one("#stop").hidden = true;
      void this.list();
    }
  }

  private forgetGrowing(): void {
    for (const seat of [...this.growing.keys()]) {
      this.growing.get(seat)?.card.remove();
      this.growing.delete(seat);
    }
    one("#stop").hidden = true;
  }

  private async ask(): Promise<void> {
    const field = one<HTMLTextAreaElement>("#question");
    const question = field.value;
    if (!question.trim()) return;
    const send = one<HTMLButtonElement>("#send");
    send.disabled = true;
    const body = { question, method: one<HTMLSelectElement>("#method").value, thread: this.id };
    announce("Asking …");
    const response = await this.call("/page/ask", body).catch(() => undefined);
    send.disabled = false;
    if (!response) {
      if (!one("#status").textContent || one("#status").textContent === "Asking …") announce("The server is not there. Your question is still here.");
      return;
    }
    const { thread, notices } = (await response.json()) as { thread: string; notices: string[] };
    field.value = "";
    announce(notices.join(" "));
    if (thread !== this.id) this.go(thread);
    void this.list();
  }

  private forkButton(name: string, title: string, cut: Cut): HTMLElement {
    return make("button", { type: "button", class: "fork", title, click: () => void this.fork(cut) }, name);
  }

  /** Gives messages a button that continues in a fork. */
  private offerForks(within: HTMLElement): void {
    for (const message of within.querySelectorAll<HTMLElement>("article[data-seq]")) {
      const tools = message.querySelector<HTMLElement>("header .tools");
      const before = Number(message.dataset.seq);
      if (!tools || before < 2) continue;
      const [name, title] = message.matches(".king")
        ? ["Rewind", "Continue in a fork without this question and what follows"]
        : ["Fork", "Continue in a fork without this message and what follows"];
      tools.append(this.forkButton(name, title, { before }));
    }
  }

  /** Gives stages, the record and the verdict their buttons, and links of forks their effect. */
  private offerMore(thread: HTMLElement): void {
    const stages = new Set<string>();
    for (const stage of thread.querySelectorAll<HTMLElement>("details[data-stage]")) {
      const name = stage.dataset.stage ?? "";
      if (stages.has(name) || stage.querySelector(".fork")) continue;
      stages.add(name);
      stage.append(this.forkButton("Fork here", "A fork with everything before this stage was answered", { stage: name }));
    }
    const record = thread.querySelector<HTMLElement>("#record dl");
    if (record && !record.querySelector(".fork")) record.append(make("dt", {}, "Fork"), make("dd", {}, this.forkButton("Fork", "Continue in a copy of this thread", {})));
    const rest = thread.querySelector<HTMLElement>("#record [data-resume]");
    if (rest && !rest.querySelector("button")) {
      const resume = make("button", { type: "button", title: "Ask for the rest of the deliberation", click: () => void this.resume(resume) }, "Resume");
      rest.append(" ", resume);
    }
    this.offerMarks(thread);
    for (const link of thread.querySelectorAll<HTMLAnchorElement>(".tree a")) {
      link.onclick = (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.go(new URLSearchParams(link.search).get("thread") ?? undefined);
      };
    }
  }

  private async fork(cut: Cut): Promise<void> {
    if (!this.id) return;
    const response = await this.call(`/page/threads/${encodeURIComponent(this.id)}/fork`, cut).catch(() => undefined);
    if (!response) return;
    const { thread } = (await response.json()) as { thread: string };
    this.go(thread);
    announce(cut.stage ? `${thread}: a fork. Resume, at the end of the page, asks for the rest.` : `${thread}: a fork. The old thread is unchanged.`);
    void this.list();
  }

  /** Gives the verdict buttons that mark it right, wrong, or by the right answer. */
  private offerMarks(thread: HTMLElement): void {
    const place = thread.querySelector<HTMLElement>("#head [data-mark], [data-mark]");
    if (!place || place.querySelector("button")) return;
    const button = (name: string, mark: () => string) =>
      make("button", { type: "button", title: `Mark this verdict: ${name.toLowerCase()}`, click: () => void this.mark(mark()) }, name);
    const answer = make("input", { type: "text", "aria-label": "The right answer", placeholder: "the right answer" });
    place.append("Was it right? ", button("Right", () => "right"), " ", button("Wrong", () => "wrong"), " ", answer, " ", button("Mark", () => answer.value));
    place.hidden = false;
  }

  /** Marks the newest verdict of the open thread. */
  private async mark(mark: string): Promise<void> {
    if (!this.id || !mark.trim()) return;
    const response = await this.call(`/page/threads/${encodeURIComponent(this.id)}/mark`, { mark }).catch(() => undefined);
    if (!response) return;
    const { marked } = (await response.json()) as { marked: string };
    announce(marked);
  }

  /** Finishes the deliberation of the open thread. */
  private async resume(button: HTMLButtonElement): Promise<void> {
    if (!this.id) return;
    button.disabled = true;
    announce("Asking …");
    const response = await this.call(`/page/threads/${encodeURIComponent(this.id)}/resume`, {}).catch(() => undefined);
    button.disabled = false;
    if (!response) {
      if (one("#status").textContent === "Asking …") announce("The server is not there.");
      return;
    }
    const { notices } = (await response.json()) as { notices: string[] };
    announce(notices.join(" "));
  }

  private async stop(seat?: string): Promise<void> {
    if (!this.id) return;
    await this.call(`/page/threads/${encodeURIComponent(this.id)}/stop`, { seat: seat ?? null }).catch(() => undefined);
  }

  private isAtEnd(): boolean {
    const top = document.documentElement;
    return top.scrollHeight - top.scrollTop - top.clientHeight < 120;
  }

  private toEnd(): void {
    document.documentElement.scrollTop = document.documentElement.scrollHeight;
  }
}
