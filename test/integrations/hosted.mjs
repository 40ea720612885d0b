// Runs the server of a bundle as Claude Desktop does: imported by another program, which replaces stdin and stdout by messages of
// `fork`.
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [entry, ...args] = process.argv.slice(2);
const lines = new Readable({ read() {} });
for (const method of ['on', 'once', 'pause', 'resume', 'removeListener', 'destroy']) {
  process.stdin[method] = lines[method].bind(lines);
}
process.stdout.write = (chunk) => {
  process.send(chunk.toString());
  return true;
};
process.on('message', (line) => lines.push(`${line}\n`));
process.argv = ['node', entry, ...args];
await import(pathToFileURL(resolve(entry)).href);
