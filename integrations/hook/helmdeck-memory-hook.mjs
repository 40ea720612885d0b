#!/usr/bin/env node
/**
 * A hook of an agent: asks the Helmdeck Memory running on this machine, or a server of Helmdeck Memory, for a brief, and prints
 * the brief in the form that the agent expects. This single file needs only Node 18 or later, so that it can be copied next to an
 * agent. It uses no HTTP library, because loading one takes longer than the whole request.
 *
 *   helmdeck-memory-hook.mjs <client> session   at the start of a session: reads the agent's JSON on stdin
 *   helmdeck-memory-hook.mjs <client> prompt    before each prompt
 *   helmdeck-memory-hook.mjs <client> check     tests the connection and prints the result; reads nothing
 *
 * The hook verifies the program's identity or the server's certificate before it sends the token or the prompt. If the program is
 * stopped, locked or slow, or if another program responds, the hook prints nothing and exits with 0: an agent would show an error
 * to its user in every turn, although the user cannot act on it.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Milliseconds from the start of the process to its exit, so that a program that does not respond delays the agent by less than 300 ms. */
const LOCAL_LIMIT_MS = 270;
/** The same for a server on another machine. */
const SERVER_LIMIT_MS = 800;
const CHECK_LIMIT_MS = 5000;
/** Maximum bytes of the agent's JSON. A longer input is read to its end, because some agents fail if it is not, and ignored. */
const MAX_INPUT_BYTES = 8 * 1024 * 1024;
/** Characters of a prompt that the program uses. The rest of a longer prompt is not sent. */
const MAX_PROMPT = 8000;
const MAX_RESPONSE_BYTES = 32 * 1024;

/* Finding the program and the token. */

const OWN_FOLDER = dirname(fileURLToPath(import.meta.url));

/**
 * Returns the path of the data folder: the folder of this file, if `connect` copied the file there, or else the same folder as
 * `resolveDataFolder` in src/main/config/config.ts.
 */
function dataFolder(environment = process.env, platform = process.platform) {
  if (existsSync(join(OWN_FOLDER, 'clients'))) return OWN_FOLDER;
  const configured = environment['HELMDECK_DATA_DIR'] ?? '';
  if (isAbsolute(configured)) return configured;
  if (platform === 'win32') return join(environment['APPDATA'] ?? join(homedir(), 'AppData', 'Roaming'), 'Helmdeck Memory');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'Helmdeck Memory');
  const data = environment['XDG_DATA_HOME'] ?? '';
  return join(isAbsolute(data) ? data : join(homedir(), '.local', 'share'), 'helmdeck-memory');
}

/** Reads a file that only its owner can access. Throws if another user owns the file or can read it. */
function readPrivateFile(path) {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const { mode, uid } = fstatSync(file);
    const isPrivate = process.platform === 'win32' || (uid === process.getuid() && (mode & 0o077) === 0);
    if ((mode & 0o170000) !== 0o100000 || !isPrivate) throw new Error('not private');
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function readIfExists(path) {
  try {
    return readPrivateFile(path);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Returns the address and the token of the memory that the client uses. A client of a server has one token, which the server's
 * admin gave to its user.
 */
function readTarget(folder, client) {
  const path = join(folder, 'clients', client);
  const server = readIfExists(`${path}.server.json`);
  const token = (readIfExists(`${path}.hook.token`) ?? (server && readPrivateFile(`${path}.token`)) ?? '').trim();
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error('there is no token for this hook');
  return { token, ...(server === undefined ? localEndpoint(folder) : serverEndpoint(server)) };
}

function localEndpoint(folder) {
  const { url, pid, proof_key: key } = JSON.parse(readPrivateFile(join(folder, 'endpoint.json')));
  const [, host, port] = /^http:\/\/(127\.0\.0\.1|\[::1\]):(\d{1,5})$/.exec(url);
  if (!/^[0-9a-f]{64}$/.test(key) || !isProcessAlive(pid)) throw new Error('Helmdeck Memory is not running');
  return { host: host.replace(/[[\]]/g, ''), port: Number(port), authority: `${host}:${port}`, key: Buffer.from(key, 'hex') };
}

function serverEndpoint(text) {
  const { url, ca = '' } = JSON.parse(text);
  const { protocol, host, hostname, port } = new URL(url);
  if (protocol !== 'https:') throw new Error('the address of the server is not https');
  return { host: hostname.replace(/[[\]]/g, ''), port: Number(port || 443), authority: host, server: true, ca };
}

function isProcessAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/**
 * Whether a plugin's copy of this file must be silent: the owner did not choose the event, or `connect` wrote the same hook to the
 * client's configuration.
 */
function isLeftToAnother(folder, client, event) {
  if (folder === OWN_FOLDER) return false;
  const { hooks } = objectIn(readIfExists(join(folder, 'clients', `${client}.json`)) ?? '{}');
  return hooks !== undefined && hooks[event] !== '';
}

/* The connection. The limit of the whole process ends it. */

/** Opens a connection and verifies on it that the program is Helmdeck Memory. */
function connectProved({ host, port, authority, key }) {
  const challenge = randomBytes(32).toString('hex');
  const expected = createHmac('sha256', key).update(challenge).digest();
  return new Promise((fulfil, reject) => {
    const socket = connect({ host, port, noDelay: true });
    let text = '';
    const fail = () => {
      socket.destroy();
      reject(new Error('another program uses the port of Helmdeck Memory'));
    };
    const onData = (chunk) => {
      text += chunk.toString('latin1');
      const proof = /^HTTP\/1\.1 200 [^]*?\r\n\r\n\{[^]*"proof":"([0-9a-f]{64})"\}$/.exec(text)?.[1];
      if (proof === undefined) {
        if (text.length > 4096 || !text.startsWith('HTTP/1.1 200 '.slice(0, text.length))) fail();
        return;
      }
      if (!timingSafeEqual(Buffer.from(proof, 'hex'), expected)) return fail();
      socket.off('data', onData).off('end', fail);
      fulfil(socket);
    };
    socket.on('data', onData).once('end', fail).on('error', fail);
    socket.write(`GET /healthz?challenge=${challenge} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  });
}

/**
 * Opens a connection to a server on another machine and verifies its certificate. Trusts the authorities of Node and of the
 * operating system, and those in `ca`. No environment variable turns the verification off.
 */
async function connectVerified({ host, port, ca }) {
  const [tls, { isIP }] = await Promise.all([import('node:tls'), import('node:net')]);
  const trusted = tls.getCACertificates
    ? [...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')])]
    : [...tls.rootCertificates];
  const secureContext = tls.createSecureContext({ ca: ca === '' ? trusted : [...trusted, ca], minVersion: 'TLSv1.2' });
  const name = isIP(host) === 0 && { servername: host };
  return new Promise((fulfil, reject) => {
    const socket = tls.connect({ host, port, ...name, secureContext, rejectUnauthorized: true, ALPNProtocols: ['http/1.1'] });
    socket.once('secureConnect', () => fulfil(socket)).on('error', reject);
  });
}

/** Sends a request on a verified connection. Returns the response, or throws if its status is not 200. */
function send(socket, { authority, token }, body) {
  const text = Buffer.from(JSON.stringify(body));
  const head = [
    'POST /api/v1/brief HTTP/1.1',
    `Host: ${authority}`,
    `Authorization: Bearer ${token}`,
    'Accept: application/json',
    'Content-Type: application/json',
    `Content-Length: ${text.length}`,
    'Connection: close',
  ];
  return new Promise((fulfil, reject) => {
    let received = '';
    const settle = (isEnd) => {
      const isTooLong = received.length > MAX_RESPONSE_BYTES;
      const content = isTooLong ? undefined : bodyOf(received, isEnd);
      if (content === undefined && !isEnd && !isTooLong) return;
      socket.destroy();
      const answer = content !== undefined && JSON.parse(Buffer.from(content, 'latin1').toString('utf8'));
      if (answer && received.startsWith('HTTP/1.1 200 ')) fulfil(answer);
      else reject(new Error(typeof answer?.message === 'string' ? answer.message : 'Helmdeck Memory did not respond'));
    };
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      settle(false);
    });
    socket.once('end', () => settle(true)).on('error', reject);
    socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), text]));
  });
}

/** Returns the body of an HTTP response if it is complete. A proxy in front of a server possibly sends the body in chunks. */
function bodyOf(received, isEnd) {
  const at = received.indexOf('\r\n\r\n');
  if (at === -1) return undefined;
  const [head, body] = [received.slice(0, at), received.slice(at + 4)];
  if (/^transfer-encoding: *chunked/im.test(head)) return isEnd ? withoutChunks(body) : undefined;
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? Infinity);
  return body.length >= length || (isEnd && length === Infinity) ? body : undefined;
}

function withoutChunks(body) {
  let text = '';
  for (let at = 0; at < body.length;) {
    const line = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.slice(at, line), 16);
    if (!(size > 0)) break;
    text += body.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
  return text;
}

/* What the agent says, and what is asked. */

/** Reads the agent's JSON. Returns an empty object if there is none, or if it is too long. */
function readInput() {
  if (process.stdin.isTTY) return Promise.resolve({});
  return new Promise((fulfil) => {
    let bytes = 0;
    let chunks = [];
    const finish = () => fulfil(objectIn(Buffer.concat(chunks).toString('utf8')));
    process.stdin.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes > MAX_INPUT_BYTES) chunks = [];
      else chunks.push(chunk);
    });
    process.stdin.once('end', finish).once('error', finish);
  });
}

function objectIn(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/**
 * True if another agent runs this hook. Cursor and Visual Studio Code also run the hooks in the settings of Claude Code, and
 * possibly have a hook of their own.
 */
const isOfAnotherAgent = (client, { cursor_version: cursor, hookEventName, source }) =>
  (cursor !== undefined && client !== 'cursor') || ((hookEventName !== undefined || source === 'new') && client !== 'vscode');

/** Agents that show their model no text of a hook that runs before a prompt. */
const WITHOUT_PROMPTS = ['cursor', 'vscode'];

/**
 * Returns the request for the agent's event, or undefined if there is nothing to ask. Gemini CLI puts the brief of the session in
 * front of the first prompt, so that brief is removed here: the memory must not search for its own text.
 */
function requestFor(client, event, input) {
  if (isOfAnotherAgent(client, input) || (event === 'prompt' && WITHOUT_PROMPTS.includes(client))) return undefined;
  const { prompt, source } = input;
  // Cursor has a conversation and root folders. Visual Studio Code writes the name of the session differently.
  const id = input.session_id ?? input.sessionId ?? input.conversation_id;
  const cwd = input.cwd ?? input.workspace_roots?.[0];
  const session = typeof id === 'string' && /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined;
  const folder = typeof cwd === 'string' && isAbsolute(cwd) ? projectFolder(resolve(cwd)) : undefined;
  const place = { ...(folder !== undefined && { folder }), ...(session !== undefined && { session }) };
  if (event === 'session') return { ...place, ...(hasLostContext(client, source) && { repeat: true }) };
  const said = typeof prompt === 'string' ? prompt.replace(/<hook_context>[^]*?(?:<\/hook_context>|$)/g, '').trim() : '';
  return said === '' ? undefined : { ...place, prompt: said.slice(0, MAX_PROMPT).replace(/\p{Surrogate}/gu, '\uFFFD') };
}

/** Whether the agent's model no longer has what the hook said earlier in this session. */
const hasLostContext = (client, source) =>
  source === 'compact' || source === 'clear' || (source === 'resume' && client === 'gemini-cli');

/**
 * Returns the root folder of the repository that contains the folder. A worktree belongs to its main repository. Without a
 * repository, returns the folder itself, unless it is the home folder, which belongs to no project.
 */
function projectFolder(cwd) {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const git = statSync(join(folder, '.git'), { throwIfNoEntry: false });
    if (git?.isDirectory()) return folder;
    if (git?.isFile()) return mainRepository(folder);
    if (dirname(folder) === folder) return cwd === homedir() || cwd === folder ? undefined : cwd;
  }
}

function mainRepository(folder) {
  const [, path = ''] = /^gitdir: (.+)$/m.exec(readFileSync(join(folder, '.git'), 'utf8')) ?? [];
  const [, common] = /^(.*)[/\\]worktrees[/\\][^/\\]+$/.exec(resolve(folder, path.trim())) ?? [];
  // A submodule has such a file too, and is a repository of its own.
  if (common === undefined) return folder;
  return basename(common) === '.git' ? dirname(common) : common.replace(/\.git$/, '');
}

/** Returns the text that makes the agent show the brief to its model. */
function outputFor(client, event, { hook_event_name: name }, brief) {
  if (client === 'cursor') return JSON.stringify({ additional_context: brief });
  const usual = event === 'session' ? 'SessionStart' : client === 'gemini-cli' ? 'BeforeAgent' : 'UserPromptSubmit';
  const hookEventName = typeof name === 'string' && /^\w{1,40}$/.test(name) ? name : usual;
  return JSON.stringify({ hookSpecificOutput: { hookEventName, additionalContext: brief } });
}

/** Prints a text synchronously, so that the process can exit directly afterwards. */
function print(text) {
  try {
    writeSync(1, text);
  } catch {
    // The agent no longer reads the output.
  }
}

const exit = () => process.exit(0);

async function speak(client, event) {
  // Read the input in any case, even if there is nothing to ask, because some agents fail if they cannot write the input.
  const reading = readInput();
  const timeout = exitAfter(LOCAL_LIMIT_MS);
  try {
    const folder = dataFolder();
    if (isLeftToAnother(folder, client, event)) return await reading;
    const target = readTarget(folder, client);
    if (target.server) {
      clearTimeout(timeout);
      exitAfter(SERVER_LIMIT_MS);
    }
    // Verify the program while the agent is still writing.
    const [socket, input] = await Promise.all([target.server ? connectVerified(target) : connectProved(target), reading]);
    const request = requestFor(client, event, input);
    const { text } = request === undefined ? {} : await send(socket, target, request);
    if (typeof text === 'string' && text !== '') print(outputFor(client, event, input, text));
  } catch {
    await reading;
  }
}

/** Exits when the process has run for this time. The start of Node counts too. */
const exitAfter = (milliseconds) => setTimeout(exit, Math.max(0, milliseconds - performance.now()));

/** Asks for a brief that contains nothing, so that the test leaves no trace in the memory. */
async function check(client) {
  setTimeout(() => {
    print(JSON.stringify({ works: false, why: 'Helmdeck Memory did not respond in time' }));
    exit();
  }, CHECK_LIMIT_MS);
  try {
    const target = readTarget(dataFolder(), client);
    const socket = await (target.server ? connectVerified(target) : connectProved(target));
    await send(socket, target, { prompt: '-' });
    print(JSON.stringify({ works: true }));
  } catch (error) {
    print(JSON.stringify({ works: false, why: error.code ? `a file or connection failed (${error.code})` : error.message }));
  }
}

const [client = '', event] = process.argv.slice(2);
process.on('uncaughtException', exit);
if (!/^[a-z][a-z0-9-]{0,31}$/.test(client)) exit();
else if (event === 'session' || event === 'prompt') await speak(client, event).then(exit, exit);
else if (event === 'check') await check(client).then(exit, exit);
else exit();
