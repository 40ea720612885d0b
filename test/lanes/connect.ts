import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Caller } from '../../src/core/access/caller.ts';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import { Finder } from '../../src/core/search/finder.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { startListener } from '../../src/listeners/listener.ts';
import { CONNECTORS } from '../../src/main/connect/clients.ts';
import { Connections } from '../../src/main/connect/connections.ts';
import { localMachine } from '../../src/main/connect/programs.ts';
import { askCodex } from './connect-codex.ts';
import { Checks } from './faults/checks.ts';

const PROGRAMS = resolve(import.meta.dirname, 'connect/node_modules/.bin');

/** Turns a client's own configuration file into one that its owner has edited. Undefined means no file. */
type Before = ((own: string) => string) | undefined;

interface Real {
  readonly client: string;
  readonly program: string;
  readonly file: string;
  /** Adds another server with the client's own command, so that the client writes its file. */
  readonly other: readonly string[];
  /** Reformats the file as an owner might. */
  readonly restyled: (own: string) => string;
  /** The line in the client's own list for a working entry. */
  readonly connected: RegExp;
  /** Makes the client use the memory, if that needs no model. */
  readonly use?: typeof askCodex;
}

const REAL: readonly Real[] = [
  {
    client: 'claude-code',
    program: 'claude',
    file: '.claude.json',
    other: ['mcp', 'add', '--scope', 'user', 'other', '--', 'true'],
    // This client's JSON allows no comments.
    restyled: (own) => `${JSON.stringify({ ...Object(JSON.parse(own)), unknown: [1, { a: [] }] }, undefined, '\t')}\n\n`,
    connected: /helmdeck: .*Connected/,
  },
  {
    client: 'codex',
    program: 'codex',
    file: '.codex/config.toml',
    other: ['mcp', 'add', 'other', '--', 'true'],
    restyled: (own) =>
      `# mine\nmodel = "gpt-5"   # keep\n\n${own.trimEnd()}\nargs = [ "a",\n  "b" ]\n\n[projects."/x"]\ntrust_level = "trusted"\n`,
    // This client lists servers without starting them.
    connected: /helmdeck .*enabled/,
    use: askCodex,
  },
  {
    client: 'gemini-cli',
    program: 'gemini',
    file: '.gemini/settings.json',
    other: ['mcp', 'add', '--scope', 'user', 'other', 'true'],
    restyled: (own) => own.replace('{', '{ // mine\n     /* a */ "unknown": [1,\n 2],').replaceAll('      ', '\t'),
    connected: /✓ helmdeck: .*Connected/,
  },
];

const checks = new Checks();
const { check } = checks;

const folder = mkdtempSync(join(tmpdir(), 'helmdeck-connect-'));
const owner: Caller = { subject: 'me', client: 'lane', transport: 'lane', token: '', scopes: new Set(['admin']) };
const store = new RamStore(systemClock);
const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
const { perform } = createCore({ store, tokens, finder: new Finder(store), clock: systemClock });
const listener = await startListener({
  perform,
  tokens,
  onChange: (hear) => store.onChange(hear),
  folder,
  address: '127.0.0.1:0',
  version: 'lane',
  clock: systemClock,
});

await checks.through(
  async () => {
    for (const real of REAL) {
      await connectOne(real, 'no file', undefined);
      await connectOne(real, 'its own layout', (own) => own);
      await connectOne(real, 'a layout of its owner', real.restyled);
    }
  },
  async () => {
    await listener.close();
    rmSync(folder, { recursive: true });
  },
);

/** Connects one client in a temporary home folder, so that it reads no settings of the developer. */
async function connectOne({ client, program, file, other, connected, use }: Real, kind: string, make: Before): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'helmdeck-home-'));
  const path = join(home, file);
  const environment = {
    PATH: [PROGRAMS, dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
    HOME: home,
    // Gemini CLI lists servers as disabled in untrusted folders.
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
  };
  const host = localMachine({ environment, platform: process.platform, home: () => home });
  const ask = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await host.run(join(PROGRAMS, program), args);
    return stripVTControlCharacters(stdout + stderr);
  };
  if (make) {
    await ask(...other);
    writeFileSync(path, make(readFileSync(path, 'utf8')));
    // The client updates its file at its first start. Let it do so before the comparison.
    await ask('mcp', 'list');
  }
  const before = make && readFileSync(path, 'utf8');
  const connections = new Connections({ connectors: CONNECTORS, machine: host, tokens, folder, now: () => store.now() });
  const name = `${client}, ${kind}:`;
  try {
    const plan = await connections.plan({ client, subject: 'me' });
    const asked = plan.commands[0]?.program;
    check(`${name} its own command creates a missing file`, asked === (make ? undefined : join(PROGRAMS, program)), plan);
    const done = await connections.connect({ client, subject: 'me', basis: plan.basis });
    check(`${name} the server that it starts reaches the memory`, done.verified.works, done);
    const after = readFileSync(path, 'utf8');
    check(`${name} everything that the owner wrote is still there`, holdsAll(after, before ?? ''), after);
    // The client's first start creates more files, so this comes after the check of its files.
    if (make) {
      const listed = await ask('mcp', 'list');
      check(`${name} its own list shows the connection`, connected.test(listed), listed);
    }
    if (make && use) {
      const heard = await use(join(PROGRAMS, program), environment, home);
      check(`${name} it stores a fact and reads the memory`, /"created".*codex\/says/.test(JSON.stringify(heard)), heard);
      const fact = await perform(owner, 'recall', { key: 'codex/says' });
      check(`${name} the fact is stored under the client's name`, fact.client === client, fact);
      await perform(owner, 'forget', { scope: 'all' });
    }
    const taken = await connections.disconnect({ client });
    const left = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
    check(`${name} after disconnecting, the file is byte for byte as before`, left === before, [taken, left]);
    const relisted = await ask('mcp', 'list');
    // A failing command would also list no entry of ours.
    const lists = make === undefined || /\bother\b/.test(relisted);
    check(
      `${name} after disconnecting, its own list does not contain our entry`,
      lists && !/helmdeck-memory-mcp/.test(relisted),
      relisted,
    );
  } catch (error) {
    check(`${name} is connected`, false, error);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Whether the text contains every character in the given order, with others in between. */
function holdsAll(text: string, part: string): boolean {
  let at = -1;
  return part.split('').every((char) => (at = text.indexOf(char, at + 1)) !== -1);
}
