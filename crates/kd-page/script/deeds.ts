// What the user can do with an open thread besides asking: fork it, mark its verdict, finish its deliberation, pick an
// answer, ask a member again.

import { announce, make, one } from "./dom.js";
import { type Server, threadPath } from "./server.js";

/** Where a fork leaves its source; empty for all of it. */
interface Cut {
  before?: number;
  stage?: string;
}

export class Deeds {
  /** `go` opens a thread; `changed` is called when the list of threads has changed. */
  constructor(
    private server: Server,
    private current: () => string | undefined,
    private go: (id: string | undefined) => void,
    private changed: () => void,
  ) {}

  private async post<T>(deed: string, body: unknown): Promise<T | undefined> {
    const id = this.current();
    return id ? this.server.json<T>(threadPath(id, deed), body) : undefined;
  }

  private forkButton(name: string, title: string, cut: Cut): HTMLElement {
    return make("button", { type: "button", class: "fork", title, click: () => void this.fork(cut) }, name);
  }

  /** Gives messages a button that continues in a fork. */
  offerForks(within: HTMLElement): void {
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

  /** Gives the answers of the last round what only the newest ones have: a pick that is recorded, and a retry of what failed. */
  offerOnNewest(thread: HTMLElement): void {
    for (const old of thread.querySelectorAll(".newest")) old.remove();
    const newest = new Map<string, HTMLElement>();
    // A pick or a retry has to wait until nobody is asked.
    if (thread.querySelector("#head .now")) return;
    let round = one("#said", thread).lastElementChild;
    while (round && !round.querySelector(".says[data-from]")) round = round.previousElementSibling;
    for (const answer of round?.querySelectorAll<HTMLElement>(".says[data-from]") ?? []) newest.set(answer.dataset.from ?? "", answer);
    for (const [seat, answer] of newest) {
      const tools = answer.querySelector("header .tools");
      const failed = answer.dataset.status !== "complete";
      // In a deliberation no member is asked alone.
      if (failed && answer.dataset.retry === undefined) continue;
      const button = failed
        ? make("button", { type: "button", class: "newest", title: `Ask ${seat} the same again; the answer takes the place of this one`, click: () => void this.retry(seat, button) }, "Retry")
        : make("button", { type: "button", class: "newest", title: `Record that you choose the answer of ${seat}; the members see it in their next turn`, click: () => void this.pick(seat, button) }, "Pick");
      tools?.prepend(button);
    }
  }

  private async retry(seat: string, button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    announce(`Asking ${seat} again …`);
    const got = await this.post<{ notices: string[] }>("/retry", { seat });
    button.disabled = false;
    if (got) announce(got.notices.join(" "));
  }

  private async pick(seat: string, button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    const got = await this.post<{ chosen: boolean }>("/choose", { seat });
    button.disabled = false;
    if (got) announce(`The answer of ${seat} is your choice. The members see it in their next turn.`);
  }

  /** Gives stages, the record and the verdict their buttons, and links of forks their effect. */
  offerMore(thread: HTMLElement): void {
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
    const got = await this.post<{ thread: string }>("/fork", cut);
    if (!got) return;
    this.go(got.thread);
    announce(cut.stage ? `${got.thread}: a fork. Resume, at the end of the page, asks for the rest.` : `${got.thread}: a fork. The old thread is unchanged.`);
    this.changed();
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
    if (!mark.trim()) return;
    const got = await this.post<{ marked: string }>("/mark", { mark });
    if (got) announce(got.marked);
  }

  /** Finishes the deliberation of the open thread. */
  private async resume(button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    announce("Asking …");
    const got = await this.post<{ notices: string[] }>("/resume", {});
    button.disabled = false;
    if (got) announce(got.notices.join(" "));
    else if (one("#status").textContent === "Asking …") announce("The server is not there.");
  }

  async stop(seat?: string): Promise<void> {
    await this.post("/stop", { seat: seat ?? null });
  }
}
