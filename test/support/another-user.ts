import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

const SERVER = `
const asked = [];
const server = require('node:http').createServer((request, response) => {
  asked.push(request.url);
  response.end(JSON.stringify(request.url === '/asked' ? asked.slice(0, -1) : { version: '0.99.0', models: [{ name: 'all-minilm' }] }));
});
server.listen(0, '127.0.0.1', () => process.stdout.write(String(server.address().port)));
`;

/** Runs a fake Ollama as another user until the test ends, and returns its port. GET /asked returns the requests that it received. */
export async function listenAsUser(uid: number): Promise<number> {
  const child = spawn('/bin/sh', ['-c', 'exec "$0" -e "$1"', process.execPath, SERVER], {
    uid,
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  return Number(said);
}
