// The question to the council: whom it asks, and how.

import { announce, make, one } from "./dom.js";
import type { Server } from "./server.js";

interface Member {
  name: string;
  model: string;
  usual: boolean;
}

export class Form {
  private members: Member[] = [];

  /** `current` is the open thread; `asked` is called with the thread of a question. */
  constructor(
    private server: Server,
    private current: () => string | undefined,
    private asked: (thread: string) => void,
  ) {
    const form = one<HTMLFormElement>("#ask");
    const field = one<HTMLTextAreaElement>("#question");
    if (matchMedia("(pointer: coarse)").matches) field.placeholder = "Ask the council";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.ask();
    });
    field.addEventListener("keydown", (key) => {
      if (key.key === "Enter" && (key.ctrlKey || key.metaKey)) form.requestSubmit();
    });
    const whom = one<HTMLDetailsElement>("#whom");
    whom.addEventListener("keydown", (key) => {
      if (key.key === "Escape") whom.open = false;
    });
    document.addEventListener("click", (event) => {
      if (!whom.contains(event.target as Node)) whom.open = false;
    });
  }

  /** Fetches the members that can be asked. */
  async fetch(): Promise<void> {
    const got = await this.server.json<{ members: Member[] }>("/page/members");
    this.members = got?.members ?? [];
    const boxes = this.members.map((member) =>
      make("label", {}, make("input", { type: "checkbox", value: member.name, change: () => this.say() }), make("bdi", { class: "name" }, member.name), make("span", { class: "faint" }, ` ${member.model}`)),
    );
    one("#members").replaceChildren(...boxes);
    one("#whom").hidden = boxes.length < 2;
    this.say();
    this.welcome();
  }

  private chosen(): string[] {
    return [...document.querySelectorAll<HTMLInputElement>("#members input:checked")].map((box) => box.value);
  }

  /** Says whom the question goes to. */
  private say(): void {
    const names = this.chosen();
    const usual = this.current() ? "the members of this thread" : "the usual members";
    one("#whom > summary").textContent = `To: ${names.join(", ") || usual}`;
  }

  /** Takes back the choice of members, for another thread. */
  reset(): void {
    for (const box of document.querySelectorAll<HTMLInputElement>("#members input")) box.checked = false;
    this.say();
  }

  /** Says who is asked, where a new thread begins. */
  welcome(): void {
    const place = document.querySelector("#open .asks");
    if (!place) return;
    const usual = this.members.filter((member) => member.usual);
    const names = usual.flatMap((member, at) => [...(at > 0 ? [", "] : []), make("bdi", { class: "name" }, member.name), ` (${member.model})`]);
    place.replaceChildren(...(names.length > 0 ? ["Asked unless you choose others below: ", ...names, "."] : []));
  }

  /** Puts a text into the question, before what is there. */
  draft(text: string): void {
    const field = one<HTMLTextAreaElement>("#question");
    field.value = text + field.value;
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  private async ask(): Promise<void> {
    const field = one<HTMLTextAreaElement>("#question");
    const question = field.value;
    if (!question.trim()) return;
    const send = one<HTMLButtonElement>("#send");
    send.disabled = true;
    announce("Asking …");
    const body = { question, method: one<HTMLSelectElement>("#method").value, thread: this.current(), members: this.chosen() };
    const got = await this.server.json<{ thread: string; notices: string[] }>("/page/ask", body);
    send.disabled = false;
    if (!got) {
      if (!one("#status").textContent || one("#status").textContent === "Asking …") announce("The server is not there. Your question is still here.");
      return;
    }
    field.value = "";
    announce(got.notices.join(" "));
    this.asked(got.thread);
  }
}
