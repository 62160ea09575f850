// xterm.js without a browser: reads lines of JSON with bytes of a terminal, answers each with what it says, shows and was given to copy.
//
//     node xterm-js.mjs MODULE COLUMNS ROWS
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
const [module, columns, rows] = process.argv.slice(2);
const { Terminal } = createRequire(import.meta.url)(module);
const terminal = new Terminal({ cols: Number(columns), rows: Number(rows), allowProposedApi: true, scrollback: 1000 });
let said = '';
let copied = [];
terminal.onData((data) => { said += data; });
terminal.parser.registerOscHandler(52, (data) => {
  copied.push(Buffer.from(data.slice(data.indexOf(';') + 1), 'base64').toString());
  return true;
});
for await (const line of createInterface({ input: process.stdin })) {
  const { write, resize } = JSON.parse(line);
  if (resize) terminal.resize(...resize);
  if (write) await new Promise((done) => terminal.write(Buffer.from(write, 'base64'), done));
  const buffer = terminal.buffer.active;
  const screen = Array.from({ length: terminal.rows }, (_, y) => buffer.getLine(buffer.baseY + y)?.translateToString(true) ?? '').join('\n');
  console.log(JSON.stringify({ said, copied, screen, alternate: buffer.type === 'alternate', modes: terminal.modes }));
  said = '';
  copied = [];
}
