// The script of the page: for an exported thread, which is complete, for a server's page, which grows, and for the MCP App,
// which gets a thread from its client.

import { App } from "./app.js";
import { make } from "./dom.js";
import { Live } from "./live.js";
import { equip, follow, type Words } from "./reading.js";

const island = document.getElementById("data")?.textContent ?? "null";
const data = JSON.parse(island) as { words?: Record<string, string> } | null;
const words: Words = new Map(Object.entries(data?.words ?? {}));

document.body.append(
  make("div", { id: "picked", class: "bar-below", role: "region", "aria-label": "Picked answers", hidden: true }),
  make("div", { id: "status", role: "status", class: "status" }),
);
if (document.body.hasAttribute("data-live")) {
  new Live(words);
} else if (document.body.hasAttribute("data-app")) {
  new App();
} else {
  equip(document, words);
  follow(document);
}
