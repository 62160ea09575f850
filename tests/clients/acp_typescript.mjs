// The official TypeScript client of the Agent Client Protocol against `kd acp`: KD says where the program is.
import * as acp from "@agentclientprotocol/sdk";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const passed = (name, check) => {
    if (!check) throw new Error(name);
    console.log(`passed  acp (TypeScript): ${name}`);
};

let updates = [];
const { agent: to, client: from } = acp.methods;

function connect() {
    const child = spawn(process.env.KD, ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
    const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    const app = acp
        .client({ name: "tests" })
        .onNotification(from.session.update, ({ params }) => void updates.push(params.update))
        .onRequest(from.session.requestPermission, ({ params }) => ({
            outcome: { outcome: "selected", optionId: params.options.at(-1).optionId },
        }));
    const { agent } = app.connect(stream);
    return { child, ask: (method, params) => agent.request(method, params) };
}

const said = (kind) => updates.filter((u) => u.sessionUpdate === kind);
const text = (kind) => said(kind).map((u) => u.content.text).join("");
const cwd = process.cwd();

let { child, ask } = connect();
const about = await ask(to.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
passed("initialize", about.protocolVersion === acp.PROTOCOL_VERSION && about.agentCapabilities.loadSession);
const { sessionId, modes } = await ask(to.session.new, { cwd, mcpServers: [] });
passed("a new session, with modes", sessionId && modes.availableModes.length === 3);
let answer = await ask(to.session.prompt, { sessionId, prompt: [{ type: "text", text: "Tabs or spaces?" }] });
passed("a prompt ends", answer.stopReason === "end_turn");
passed("the answer as the message", text("agent_message_chunk").includes("Spaces."));
passed("stages as a plan", said("plan").at(-1).entries.some((e) => e.status === "completed"));
passed("a card for each turn", said("tool_call").length >= 2 && said("tool_call_update").every((u) => u.status === "completed"));
for (const modeId of ["think", "deliberate"]) {
    updates = [];
    await ask(to.session.setMode, { sessionId, modeId });
    answer = await ask(to.session.prompt, { sessionId, prompt: [{ type: "text", text: "And in Makefiles?" }] });
    passed(`mode ${modeId}`, answer.stopReason === "end_turn" && text("agent_message_chunk"));
}
for (let turn = 0; turn < 50; turn++) {
    updates = [];
    if (turn === 0) await ask(to.session.setMode, { sessionId, modeId: "ask" });
    answer = await ask(to.session.prompt, { sessionId, prompt: [{ type: "text", text: `Question ${turn}?` }] });
    if (answer.stopReason !== "end_turn" || !text("agent_message_chunk")) throw new Error(`turn ${turn}`);
}
passed("50 prompts in one session", true);
child.stdin.end();
await new Promise((done) => child.once("exit", done));

updates = [];
({ child, ask } = connect());
await ask(to.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
const { sessions } = await ask(to.session.list, { cwd });
passed("sessions are listed", sessions.some((s) => s.sessionId === sessionId && s.title === "Tabs or spaces?"));
await ask(to.session.load, { sessionId, cwd, mcpServers: [] });
passed("a session is loaded", text("user_message_chunk").includes("Question 49?") && said("agent_message_chunk").length >= 50);
try {
    await ask(to.session.load, { sessionId: "council-0000", cwd, mcpServers: [] });
    throw new Error("an unknown session was loaded");
} catch (error) {
    passed("an unknown session is refused", error.code === -32602);
}
child.stdin.end();
