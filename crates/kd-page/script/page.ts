// The script of the page: for an exported thread, which is complete, and for a server's page, which grows.

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
} else {
  equip(document, words);
  follow(document);
}
