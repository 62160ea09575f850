// Requests to the server, with the token of the link that it printed.

import { announce, make, one } from "./dom.js";

const TOKEN = "kd-token";

export class Server {
  private token: string;

  /** `ready` is called whenever a token was given; `shell` is the first frame: what is fetched before it would delay it. */
  constructor(
    private ready: () => void,
    private shell: Promise<void>,
  ) {
    this.token = this.claimToken();
  }

  /** Begins, or asks for the token. */
  begin(): void {
    if (this.token) this.ready();
    else this.enter("");
  }

  /** The token of the link; it does not stay in the address. */
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
          this.ready();
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

  /** A request. `undefined` where it was turned away: then the page says so. */
  async call(path: string, body?: unknown, signal?: AbortSignal): Promise<Response | undefined> {
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

  /** What a request gives, as JSON; `undefined` where it was turned away or the server is not there. */
  async json<T>(path: string, body?: unknown): Promise<T | undefined> {
    const response = await this.call(path, body).catch(() => undefined);
    if (!response) return undefined;
    return (await response.json()) as T;
  }
}

/** The address of a request about a thread. */
export function threadPath(id: string, deed = ""): string {
  return `/page/threads/${encodeURIComponent(id)}${deed}`;
}
