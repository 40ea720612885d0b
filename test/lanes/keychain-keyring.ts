import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** The real keyring on the bus of this process, moved through its states as a person and their desktop would. */
const SERVICE = 'org.freedesktop.secrets';
const UNLOCK = 1;

const { HOME = '', XDG_RUNTIME_DIR = '', KEYRING_PASSWORD, BUSES } = process.env;
// The lane spoils what it finds, so it runs only where keychain.sh has put it.
if (KEYRING_PASSWORD === undefined || BUSES === undefined || !HOME.startsWith(BUSES))
  throw new Error('Start this with: bash test/lanes/keychain.sh');

/** What logging in does, over the keyring's control socket. */
export async function unlockKeyring(): Promise<void> {
  if (!isRunning()) bus('StartServiceByName', `string:${SERVICE}`, 'uint32:0');
  const socket = connect(join(XDG_RUNTIME_DIR, 'keyring/control'));
  const password = Buffer.from(String(KEYRING_PASSWORD));
  const body = Buffer.concat([uint32(UNLOCK), uint32(password.length), password]);
  // A byte of nothing first, beside which the system tells who is asking.
  socket.write(Buffer.concat([Buffer.of(0), uint32(body.length + 4), body]));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  if (answer.readUInt32BE(4) !== 0) throw new Error('The keyring refused its password.');
}

export function lockKeyring(): void {
  const lock = `${SERVICE.replace('secrets', 'Secret')}.Service.Lock`;
  send(SERVICE, '/org/freedesktop/secrets', lock, 'array:objpath:/org/freedesktop/secrets/collection/login');
}

/** Stops the service in the middle of its life; what it is asked waits. The result lets it go on. */
export function stopKeyring(): Disposable {
  const pid = keyringProcess();
  process.kill(pid, 'SIGSTOP');
  return { [Symbol.dispose]: () => void process.kill(pid, 'SIGCONT') };
}

/** It crashes; the bus starts it again, locked, for whoever asks it next. */
export async function crashKeyring(): Promise<void> {
  process.kill(keyringProcess(), 'SIGKILL');
  await until(() => !isRunning(), 'the keyring did not end');
}

/** Ends whoever was to ask the owner and never did. */
export function endPrompter(): void {
  process.kill(Number(readFileSync(prompter, 'utf8')), 'SIGTERM');
}

export const wasPrompted = (): boolean => existsSync(prompter);

const prompter = join(HOME, 'prompter');

/** A bus where programs look that know of none. */
export async function startBus(): Promise<AsyncDisposable> {
  const socket = join(XDG_RUNTIME_DIR, 'bus');
  const address = `unix:path=${socket}`;
  // What an earlier one left behind would look like a bus that has started.
  rmSync(socket, { force: true });
  const daemon = start('dbus-daemon', [`--config-file=${BUSES}/keyring.conf`, '--nofork', `--address=${address}`]);
  await until(() => existsSync(socket), 'the bus did not start');
  // For dbus-send; the program itself looks there by its own.
  ownBus = address;
  return { [Symbol.asyncDispose]: () => end(daemon) };
}

/** On a bus that has none until now. */
export async function startKeyring(): Promise<AsyncDisposable> {
  const daemon = start('gnome-keyring-daemon', ['--foreground', '--components=secrets']);
  await until(isRunning, 'the keyring did not start');
  return { [Symbol.asyncDispose]: () => end(daemon) };
}

export async function until(condition: () => boolean | Promise<boolean>, otherwise: string, ms = 60_000): Promise<void> {
  const from = performance.now();
  while (!(await condition())) {
    if (performance.now() - from > ms) throw new Error(otherwise);
    await wait(20);
  }
}

let ownBus: string | undefined;

function send(...[to, path, method, ...values]: [string, string, string, ...string[]]): string {
  const env = ownBus === undefined ? process.env : { ...process.env, DBUS_SESSION_BUS_ADDRESS: ownBus };
  return execFileSync('dbus-send', ['--session', '--print-reply=literal', `--dest=${to}`, path, method, ...values], {
    encoding: 'utf8',
    env,
  });
}

const bus = (method: string, ...values: string[]): string =>
  send('org.freedesktop.DBus', '/org/freedesktop/DBus', `org.freedesktop.DBus.${method}`, ...values);

const isRunning = (): boolean => bus('NameHasOwner', `string:${SERVICE}`).includes('true');

const keyringProcess = (): number => Number(/\d+$/.exec(bus('GetConnectionUnixProcessID', `string:${SERVICE}`).trim())?.[0]);

/** It goes with this process, however that ends. */
function start(command: string, args: readonly string[]): ChildProcess {
  const daemon = spawn(command, args, { stdio: 'ignore' });
  process.once('exit', () => daemon.kill('SIGKILL'));
  return daemon;
}

async function end(daemon: ChildProcess): Promise<void> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return;
  daemon.kill('SIGKILL');
  await once(daemon, 'exit');
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
