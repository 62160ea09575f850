// Creates elements without parsing markup: their content is always text.

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/** Makes an element. Values of attributes that are functions are listeners; `true` sets an attribute without a value. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** The first match, which must be there. */
export function one<E extends HTMLElement = HTMLElement>(selector: string, within: ParentNode = document): E {
  const found = within.querySelector<E>(selector);
  if (!found) throw new Error(`the page lacks ${selector}`);
  return found;
}

/** Parses the server's own markup, one element. The page's policy lets no script in it run. */
export function parsed(html: string): HTMLElement {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return document.adoptNode(holder.content.firstElementChild as HTMLElement);
}

/** Says something to whoever listens to the page. */
export function announce(text: string): void {
  one("#status").textContent = text;
}

/** Waits until the browser has painted what is there. A page in the background paints nothing: there is nothing to wait for. */
export function painted(): Promise<void> {
  if (document.hidden) return Promise.resolve();
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}
