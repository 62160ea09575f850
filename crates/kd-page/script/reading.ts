// Reading aids for a finished thread: copying answers as Markdown, comparing two, and showing the reading position.

import { announce, make, one } from "./dom.js";

/** The Markdown of messages, by their addresses in the page. */
export type Words = Map<string, string>;

const picked = new Set<string>();

/** Gives each message of the page its buttons. Messages that have them already keep them. */
export function equip(within: ParentNode, words: Words): void {
  for (const message of within.querySelectorAll<HTMLElement>("article.says[id], article.king[id]")) {
    const header = message.querySelector("header");
    if (!header || header.querySelector(".tools")) continue;
    const tools = make("span", { class: "tools" });
    tools.append(
      make("button", { type: "button", title: "Copy this message as Markdown", click: () => copy([message.id], words) }, "Copy"),
    );
    if (message.matches(".says")) {
      const box = make("input", { type: "checkbox", change: () => pick(message, box.checked, words) });
      box.checked = picked.has(message.id);
      tools.append(make("label", { title: "Pick this answer, to compare it or copy it with others" }, box, "Pick"));
    }
    header.insertBefore(tools, header.querySelector(".seq"));
  }
}

async function copy(ids: string[], words: Words): Promise<void> {
  const text = ids.map((id) => titled(id, words, ids.length > 1)).join("\n\n");
  try {
    await navigator.clipboard.writeText(text);
    announce(ids.length === 1 ? "Copied." : `Copied ${ids.length} answers.`);
  } catch {
    // Without clipboard permission, as in a page opened from a file, show the text selected.
    const field = make("textarea", { readonly: true, rows: "16" }, text);
    show("Copy this text", field);
    field.select();
  }
}

function titled(id: string, words: Words, titled: boolean): string {
  const body = words.get(id) ?? "";
  return titled ? `## ${nameOf(id)}\n\n${body}` : body;
}

function nameOf(id: string): string {
  const name = document.getElementById(id)?.querySelector(".name");
  // The mark before the name is decoration.
  return [...(name?.childNodes ?? [])].filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.textContent).join("");
}

function pick(message: HTMLElement, on: boolean, words: Words): void {
  if (on) picked.add(message.id);
  else picked.delete(message.id);
  message.classList.toggle("picked", on);
  const bar = one("#picked");
  bar.replaceChildren();
  bar.hidden = picked.size === 0;
  if (picked.size === 0) return;
  const ids = [...picked];
  bar.append(make("span", {}, `${ids.length} picked`));
  if (ids.length === 2) bar.append(make("button", { type: "button", click: () => compare(ids) }, "Compare"));
  bar.append(
    make("button", { type: "button", click: () => copy(ids, words) }, "Copy as Markdown"),
    make("button", { type: "button", click: () => clear(words) }, "Clear"),
  );
  bar.dispatchEvent(new CustomEvent("picked", { detail: ids }));
}

function clear(words: Words): void {
  for (const id of [...picked]) {
    const message = document.getElementById(id);
    const box = message?.querySelector<HTMLInputElement>(".tools input");
    if (box) box.checked = false;
    if (message) pick(message, false, words);
    else picked.delete(id);
  }
}

function compare(ids: string[]): void {
  const sides = ids.map((id) => {
    const side = document.getElementById(id)?.cloneNode(true) as HTMLElement | undefined;
    side?.removeAttribute("id");
    side?.classList.remove("picked");
    side?.querySelector(".tools")?.remove();
    return side ?? make("p", {}, "This message is not in the page any more.");
  });
  show(ids.map(nameOf).join(" and "), make("div", { class: "two" }, ...sides));
}

/** Shows something above the page, until it is closed. */
export function show(title: string, content: HTMLElement): void {
  const dialog = make(
    "dialog",
    { close: () => dialog.remove(), "aria-label": title },
    make("header", {}, make("h2", {}, title), make("button", { type: "button", click: () => dialog.close() }, "Close")),
    content,
  );
  document.body.append(dialog);
  dialog.showModal();
}

let seen: IntersectionObserver | undefined;

/** Marks the section that is read in the navigation. What was followed before is followed no more. */
export function follow(within: ParentNode): void {
  const links = [...within.querySelectorAll<HTMLAnchorElement>("nav.sections a")];
  seen?.disconnect();
  seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links) {
          if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
          else link.removeAttribute("aria-current");
        }
      }
    },
    { rootMargin: "-10% 0px -80% 0px" },
  );
  for (const section of within.querySelectorAll("section")) seen.observe(section);
}
