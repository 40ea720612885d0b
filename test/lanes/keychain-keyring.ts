import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** Controls the real keyring on the bus of this process, as a person and their desktop would. */
const SERVICE = 'org.freedesktop.secrets';
const UNLOCK = 1;

const { HOME = '', XDG_RUNTIME_DIR = '', KEYRING_PASSWORD, BUSES } = process.env;
// The lane changes keyring and home folder, so it runs only in the environment that keychain.sh prepares.
if (KEYRING_PASSWORD === undefined || BUSES === undefined || !HOME.startsWith(BUSES))
  throw new Error('Start this with: bash test/lanes/keychain.sh');

/** Unlocks the keyring over its control socket, as a login does. */
export async function unlockKeyring(): Promise<void> {
  if (!isRunning()) bus('StartServiceByName', `string:${SERVICE}`, 'uint32:0');
  const socket = connect(join(XDG_RUNTIME_DIR, 'keyring/control'));
  const password = Buffer.from(String(KEYRING_PASSWORD));
  const body = Buffer.concat([uint32(UNLOCK), uint32(password.length), password]);
  // The protocol starts with a zero byte, to which the system attaches the sender's credentials.
  socket.write(Buffer.concat([Buffer.of(0), uint32(body.length + 4), body]));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  if (answer.readUInt32BE(4) !== 0) throw new Error('The keyring refused its password.');
}

export function lockKeyring(): void {
  const lock = `${SERVICE.replace('secrets', 'Secret')}.Service.Lock`;
  send(SERVICE, '/org/freedesktop/secrets', lock, 'array:objpath:/org/freedesktop/secrets/collection/login');
}

/** Suspends the service, so that requests wait. Returns a function that resumes it. */
export function stopKeyring(): Disposable {
  const pid = keyringProcess();
  process.kill(pid, 'SIGSTOP');
  return { [Symbol.dispose]: () => void process.kill(pid, 'SIGCONT') };
}

/** Crashes the service. The bus restarts it, locked, at the next request. */
export async function crashKeyring(): Promise<void> {
  process.kill(keyringProcess(), 'SIGKILL');
  await until(() => !isRunning(), 'the keyring did not end');
}

/** Kills the prompter, which never asked the owner. */
export function endPrompter(): void {
  process.kill(Number(readFileSync(prompter, 'utf8')), 'SIGTERM');
}

export const wasPrompted = (): boolean => existsSync(prompter);

const prompter = join(HOME, 'prompter');

/** A bus at the default address, for programs without DBUS_SESSION_BUS_ADDRESS. */
export async function startBus(): Promise<AsyncDisposable> {
  const socket = join(XDG_RUNTIME_DIR, 'bus');
  const address = `unix:path=${socket}`;
  // The socket of an earlier bus would look like a running bus.
  rmSync(socket, { force: true });
  const daemon = start('dbus-daemon', [`--config-file=${BUSES}/keyring.conf`, '--nofork', `--address=${address}`]);
  await until(() => existsSync(socket), 'the bus did not start');
  // For dbus-send. The program itself tries this address by default.
  ownBus = address;
  return { [Symbol.asyncDispose]: () => end(daemon) };
}

/** Starts a keyring on a bus without one. */
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

/** Starts a daemon that is killed when this process exits. */
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
