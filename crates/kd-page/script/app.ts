// The page as an MCP App: it runs in the sandbox of a client, which sends it the arguments and the result of a tool.
// Messages are JSON-RPC through `postMessage` (MCP Apps, 2026-01-26).

import { announce, make, one, parsed } from "./dom.js";
import { equip, follow } from "./reading.js";

const PROTOCOL = "2026-01-26";
/** Where a result has the thread: `{html, words}`. */
const PAGE = "kd/page";

interface Message {
  jsonrpc: "2.0";
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string };
}

interface HostContext {
  theme?: "light" | "dark";
}

interface ToolResult {
  content?: { type: string; text?: string }[];
  isError?: boolean;
  _meta?: Record<string, { html: string; words: Record<string, string> } | undefined>;
}

export class App {
  private last = 0;
  private waiting = new Map<number | string, (answer: Message) => void>();

  constructor() {
    addEventListener("message", (event) => {
      // Only the client may speak; another frame of it may not.
      if (event.source === parent && event.data?.jsonrpc === "2.0") this.take(event.data as Message);
    });
    document.addEventListener("click", (event) => this.click(event));
    void this.begin();
  }

  private async begin(): Promise<void> {
    const answer = await this.request("ui/initialize", {
      protocolVersion: PROTOCOL,
      appInfo: { name: "kd", version: "1" },
      appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
    });
    const { hostContext } = (answer.result ?? {}) as { hostContext?: HostContext };
    this.dress(hostContext);
    this.notify("ui/notifications/initialized", {});
    const size = () => {
      const { width, height } = document.documentElement.getBoundingClientRect();
      this.notify("ui/notifications/size-changed", { width: Math.ceil(width), height: Math.ceil(height) });
    };
    new ResizeObserver(size).observe(document.documentElement);
  }

  private take(message: Message): void {
    if (message.method === undefined) {
      const id = message.id ?? "";
      this.waiting.get(id)?.(message);
      this.waiting.delete(id);
      return;
    }
    const params = message.params ?? {};
    switch (message.method) {
      case "ui/notifications/tool-input":
        this.asked((params.arguments as { question?: unknown } | undefined)?.question);
        break;
      case "ui/notifications/tool-result":
        this.answered(params as ToolResult);
        break;
      case "ui/notifications/tool-cancelled":
        this.say("The call was cancelled. Partial answers are in the thread.");
        break;
      case "ui/notifications/host-context-changed":
        this.dress(params as HostContext);
        break;
    }
    if (message.id === undefined) return;
    const known = message.method === "ping" || message.method === "ui/resource-teardown";
    this.send(
      known
        ? { jsonrpc: "2.0", id: message.id, result: {} }
        : { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "Method not found" } },
    );
  }

  private asked(question: unknown): void {
    const asked = typeof question === "string" ? [make("h1", { dir: "auto" }, question)] : [];
    one("#open").replaceChildren(...asked, make("p", { class: "faint", role: "status" }, "The council is at work."));
  }

  private answered(result: ToolResult): void {
    const page = result._meta?.[PAGE];
    if (typeof page?.html !== "string" || typeof page.words !== "object") {
      const text = (result.content ?? []).map((block) => block.text ?? "").join("\n\n");
      this.say(text || "The call has no result to show.", result.isError);
      return;
    }
    const thread = parsed(page.html);
    one("#open").replaceChildren(thread);
    equip(thread, new Map(Object.entries(page.words ?? {})));
    follow(thread);
    announce("The council has answered.");
  }

  private say(text: string, bad = false): void {
    one("#open").replaceChildren(make("p", { class: bad ? "bad" : "faint", role: "status", dir: "auto" }, text));
  }

  private dress(context: HostContext | undefined): void {
    if (context?.theme) document.documentElement.style.colorScheme = context.theme;
  }

  /** A sandbox opens no windows: the client is asked to open links, and places in the page are scrolled to. */
  private click(event: Event): void {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[href]");
    const href = link?.getAttribute("href");
    if (!href) return;
    event.preventDefault();
    if (href.startsWith("#")) document.getElementById(href.slice(1))?.scrollIntoView();
    else void this.open(href);
  }

  private async open(url: string): Promise<void> {
    const { error, result } = await this.request("ui/open-link", { url });
    if (error || (result as { isError?: boolean } | undefined)?.isError) announce(`The client does not open ${url}`);
  }

  private request(method: string, params: Record<string, unknown>): Promise<Message> {
    const id = ++this.last;
    this.send({ jsonrpc: "2.0", id, method, params });
    return new Promise((done) => this.waiting.set(id, done));
  }

  private notify(method: string, params: Record<string, unknown>): void {
    this.send({ jsonrpc: "2.0", method, params });
  }

  /** The client's origin is not known, and nothing that is sent is secret. */
  private send(message: Message): void {
    parent.postMessage(message, "*");
  }
}
