// Reading aids for a thread: copying answers as Markdown, comparing two, merging parts of several into a draft, and
// showing the reading position.

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
      tools.append(make("label", { title: "Select this answer, to compare, merge or copy it with others" }, box, "Select"));
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
  bar.append(make("span", {}, `${ids.length} selected`));
  if (ids.length === 2) bar.append(make("button", { type: "button", click: () => compare(ids) }, "Compare"));
  // Only the server's page has a question to draft.
  if (document.querySelector("#question")) bar.append(make("button", { type: "button", click: () => merge(ids, words) }, "Merge"));
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

/** Offers the parts of answers to tick; the ticked ones become a draft, quoted by name. */
function merge(ids: string[], words: Words): void {
  const sides = ids.map((id) => {
    const parts = split(words.get(id) ?? "").map((text) => {
      const box = make("input", { type: "checkbox" });
      box.checked = true;
      return { box, text };
    });
    return { name: nameOf(id), parts };
  });
  const draft = () => {
    const quotes = sides.flatMap(({ name, parts }) => {
      const ticked = parts.filter(({ box }) => box.checked).map(({ text }) => text.replace(/^/gm, "> ").replace(/ +$/gm, ""));
      return ticked.length > 0 ? [`${name} wrote:\n${ticked.join("\n>\n")}\n`] : [];
    });
    if (quotes.length > 0) document.dispatchEvent(new CustomEvent("merge", { detail: `${quotes.join("\n")}\n` }));
    clear(words);
    dialog.close();
  };
  const columns = sides.map(({ name, parts }) =>
    make("section", {}, make("h3", {}, name), ...parts.map(({ box, text }) => make("label", { class: "part" }, box, make("span", { dir: "auto" }, text)))),
  );
  const dialog = show(
    "Tick what goes into your next message",
    make("div", {}, make("div", { class: "two" }, ...columns), make("button", { type: "button", class: "primary", click: draft }, "Make a draft")),
  );
}

/** Splits Markdown at empty lines outside of blocks of code. */
function split(text: string): string[] {
  const parts: string[] = [];
  let fence = "";
  let anew = true;
  for (const line of text.split("\n")) {
    if (!line.trim() && !fence) {
      anew = true;
      continue;
    }
    const mark = /^\s*(```|~~~)/.exec(line)?.[1] ?? "";
    if (!fence) fence = mark;
    else if (mark === fence) fence = "";
    if (anew) parts.push(line);
    else parts[parts.length - 1] += `\n${line}`;
    anew = false;
  }
  return parts;
}

/** Shows something above the page, until it is closed. */
export function show(title: string, content: HTMLElement): HTMLDialogElement {
  const dialog = make(
    "dialog",
    { close: () => dialog.remove(), "aria-label": title },
    make("header", {}, make("h2", {}, title), make("button", { type: "button", click: () => dialog.close() }, "Close")),
    content,
  );
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

let seen: IntersectionObserver | undefined;
let atEnd: (() => void) | undefined;

/** Marks the section that is read in the navigation. What was followed before is followed no more. */
export function follow(within: ParentNode): void {
  const links = [...within.querySelectorAll<HTMLAnchorElement>("nav.sections a")];
  seen?.disconnect();
  if (atEnd) removeEventListener("scroll", atEnd);
  const mark = (id: string) => {
    for (const link of links) {
      if (link.hash !== `#${id}`) {
        link.removeAttribute("aria-current");
        continue;
      }
      link.setAttribute("aria-current", "true");
      const bar = link.parentElement as HTMLElement;
      // On a narrow screen the bar is wider than the page.
      if (bar.scrollWidth > bar.clientWidth) bar.scrollTo({ left: link.offsetLeft - bar.offsetLeft - 24 });
    }
  };
  const last = links.at(-1)?.hash.slice(1);
  // The last section may be too short to come to the top.
  atEnd = () => {
    const page = document.documentElement;
    if (last && page.scrollTop > 0 && page.scrollHeight - page.scrollTop - page.clientHeight < 4) mark(last);
  };
  addEventListener("scroll", atEnd, { passive: true });
  seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) mark(entry.target.id);
      }
      atEnd?.();
    },
    { rootMargin: "-10% 0px -80% 0px" },
  );
  for (const section of within.querySelectorAll("section")) seen.observe(section);
}
