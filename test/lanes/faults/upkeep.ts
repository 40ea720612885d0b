import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import { prepareFolder } from '../../../src/core/file/prepare-folder.ts';
import { type Check, mustBeEmpty } from './lane.ts';
import { AUTHOR, LIFETIME, openKeptStore } from './memory.ts';
import { filesIn, keysIn, lookThrough, needlesIn } from './open-facts.ts';
import { type Random, randomFrom } from './random.ts';

const PROGRAM = new URL('../../../src/main/roots/cli.ts', import.meta.url).pathname;
const FACTS = 3000;
const PUTS_AT_ONCE = 250;
/** A command that takes longer counts as hung. */
const PATIENCE_MS = 120_000;

interface Site {
  /** The data folder. */
  readonly memory: string;
  readonly folder: string;
  /** A backup outside the data folder. */
  readonly backup: string;
}

interface Upkeep {
  readonly args: (site: Site) => readonly string[];
  /** Whether the command has begun to write. */
  readonly begun: (site: Site) => boolean;
}

const inBackups = (memory: string, ending: string): boolean =>
  existsSync(join(memory, 'backups')) && readdirSync(join(memory, 'backups')).some((name) => name.endsWith(ending));

const COMMANDS: Readonly<Record<string, Upkeep>> = {
  salvage: {
    args: ({ folder }) => ['salvage', join(folder, 'salvaged.ndjson')],
    begun: ({ memory }) => existsSync(join(memory, 'memory.salvaging.db')),
  },
  restore: {
    args: ({ backup }) => ['restore', backup, '--yes'],
    begun: ({ memory }) => existsSync(join(memory, 'memory.restoring.db')),
  },
  backup: { args: () => ['backup'], begun: ({ memory }) => inBackups(memory, '.db.new') },
  rotate: { args: () => ['key', 'rotate'], begun: ({ memory }) => existsSync(join(memory, 'memory.key.next')) },
};

/** Kills the program's own commands at random moments, then starts the program, runs `forget all`, and examines every file. */
export const upkeepKilled: Check = {
  name: 'R-DUR-15 R-FORGET-14 upkeep killed at random moments leaves no copy that a forget does not count',
  async run({ large, seed, folder }) {
    const random = randomFrom(seed);
    const points = large ? 25 : 3;
    const template = join(folder, 'template');
    const key = await fill(template);
    const site: Site = { memory: join(folder, 'memory'), folder, backup: join(folder, 'elsewhere.db') };
    await runCommand(template, ['backup']);
    copyFileSync(join(template, 'backups', readdirSync(join(template, 'backups'))[0] ?? ''), site.backup);
    rmSync(join(template, 'backups'), { recursive: true });

    const wrong: string[] = [];
    const sum = { killed: 0, inWork: 0, drafts: 0, backups: 0 };
    for (const [name, command] of Object.entries(COMMANDS)) {
      const times = await timesOf(command, site, template);
      for (let point = 1; point <= points; point += 1) {
        reset(site, template);
        const killed = await kill(command, site, times, random);
        sum.killed += killed.signal ? 1 : 0;
        sum.inWork += killed.inWork ? 1 : 0;
        sum.drafts += filesIn(site.memory).some((file) => /salvaging|restoring|\.db\.new/.test(file)) ? 1 : 0;
        const looked = await forgetAndLook(site, key).catch((cause: unknown) => {
          if (process.env['SOAK_KEEP']) cpSync(site.memory, process.env['SOAK_KEEP'], { recursive: true });
          throw new Error(`${name}, kill ${point}, ${killed.when}: ${String(cause)}`, { cause });
        });
        sum.backups += looked.backups;
        wrong.push(...looked.wrong.map((what) => `${name}, kill ${point}, ${killed.when}: ${what}`));
      }
    }
    mustSeeLeftovers(site, template, key);
    const figures = `${points * 4} points, ${sum.killed} killed, ${sum.inWork} of them while writing, ${sum.drafts} left drafts, ${sum.backups} backups counted, seed ${seed}`;
    mustBeEmpty(wrong, figures);
    if (sum.inWork === 0) throw new Error(`no command was killed while it was writing | ${figures}`);
    return `${figures}: no other file contains a fact`;
  },
};

async function fill(folder: string): Promise<Buffer> {
  prepareFolder(folder);
  const source = fileSource(folder);
  await source.save('current', Buffer.from('5e'.repeat(32), 'hex'));
  await using store = await openKeptStore(folder, source);
  const facts = store.space({ subject: 'me' }, 'fact');
  const put = (index: number) =>
    facts.put({
      key: `fact/${index}`,
      value: `value ${index} `.repeat(100),
      category: 'faults',
      tags: [],
      author: AUTHOR,
      lifetime: LIFETIME,
    });
  for (let from = 0; from < FACTS; from += PUTS_AT_ONCE)
    await Promise.all(Array.from({ length: PUTS_AT_ONCE }, (_, more) => put(from + more)));
  return Buffer.from(readFileSync(join(folder, 'memory.key'), 'utf8').trim(), 'hex');
}

function reset({ memory, folder }: Site, template: string): void {
  rmSync(memory, { recursive: true, force: true });
  rmSync(join(folder, 'salvaged.ndjson'), { force: true });
  mkdirSync(memory, { mode: 0o700 });
  cpSync(template, memory, { recursive: true });
}

function startCommand(memory: string, args: readonly string[]) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH, NODE_COMPILE_CACHE, HOME: join(memory, '..'), HELMDECK_DATA_DIR: memory, HELMDECK_MEANING: 'off' },
  });
  const said = { out: '', err: '' };
  child.stdout.on('data', (text: Buffer) => (said.out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (said.err += text.toString()));
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    ...said,
  }));
  return { child, ended };
}

async function runCommand(memory: string, args: readonly string[]): Promise<string> {
  const { child, ended } = startCommand(memory, args);
  const hangs = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  const { code, out, err } = await ended;
  clearTimeout(hangs);
  if (code !== 0) throw new Error(`helmdeck-memory ${args[0]} ended with ${code}: ${err.slice(-500)}`);
  return out;
}

interface Times {
  /** Milliseconds until the command began to write, and until it exited. */
  readonly begun: number;
  readonly ended: number;
}

/** Measures one uninterrupted run. */
async function timesOf(command: Upkeep, site: Site, template: string): Promise<Times> {
  reset(site, template);
  const from = performance.now();
  const { ended } = startCommand(site.memory, command.args(site));
  let begun: number | undefined;
  const done = ended.then(() => performance.now() - from);
  const state = { ended: false };
  void done.then(() => (state.ended = true));
  while (!state.ended) {
    if (begun === undefined && command.begun(site)) begun = performance.now() - from;
    await wait(1);
  }
  const { code, err } = await ended;
  if (code !== 0) throw new Error(`helmdeck-memory ${command.args(site)[0]} ended with ${code}: ${err.slice(-500)}`);
  const all = await done;
  return { begun: begun ?? all / 2, ended: all };
}

/** Half of the moments are anywhere in the run, the other half after the command has begun to write. */
async function kill(command: Upkeep, site: Site, times: Times, random: Random) {
  const { child, ended } = startCommand(site.memory, command.args(site));
  const state = { ended: false };
  const done = ended.then((how) => {
    state.ended = true;
    return how;
  });
  const anywhere = random.chance(50);
  const share = random.between(0, 1000) / 1000;
  const after = anywhere ? times.ended * share : (times.ended - times.begun) * share;
  if (!anywhere) while (!state.ended && !command.begun(site)) await wait(1);
  await Promise.race([wait(after), done]);
  const inWork = !state.ended && command.begun(site);
  child.kill('SIGKILL');
  const { signal } = await done;
  return {
    signal,
    inWork: inWork && signal !== null,
    when: `${Math.round(after)} ms after ${anywhere ? 'the start' : 'the command began to write'}`,
  };
}

async function forgetAndLook({ memory, folder }: Site, key: Buffer): Promise<{ wrong: string[]; backups: number }> {
  const scratch = join(folder, 'scratch');
  const needles = [
    ...needlesIn(join(memory, 'memory.db'), scratch),
    ...needlesIn(join(folder, 'template', 'memory.db'), scratch),
  ];
  if (needles.length === 0) throw new Error('the memory contained no fact before the forget');
  // A rotation can end during the start and remove its old key from the folder.
  const before = keysIn(memory, [key]);
  const receipt = JSON.parse(await runCommand(memory, ['forget', 'all', '--yes', '--json'])) as {
    purged: boolean;
    older_backups: number;
  };
  const looked = lookThrough(memory, keysIn(memory, before), needles, scratch);
  if (!receipt.purged) looked.wrong.push('the forget did not purge');
  if (receipt.older_backups < looked.backups)
    looked.wrong.push(`${looked.backups} backups open to facts, and the forget counted ${receipt.older_backups}`);
  return looked;
}

/** Proves that the examination can fail: plants each of these leftovers after the forget, and expects it to be reported. */
function mustSeeLeftovers({ memory, folder }: Site, template: string, key: Buffer): void {
  const scratch = join(folder, 'scratch');
  const live = join(template, 'memory.db');
  const needles = needlesIn(live, scratch);
  const plants: Readonly<Record<string, (file: string) => void>> = {
    'memory.salvaging.db': (file) => copyFileSync(live, file),
    'deep/below/any name': (file) => {
      mkdirSync(join(file, '..'), { recursive: true });
      copyFileSync(live, file);
    },
    'half a file': (file) => writeFileSync(file, readFileSync(live).subarray(0, Math.floor(readFileSync(live).length / 2))),
    'not a database': (file) => writeFileSync(file, Buffer.concat([Buffer.alloc(100), needles[0] ?? Buffer.alloc(0)])),
  };
  for (const [name, plant] of Object.entries(plants)) {
    plant(join(memory, name));
    const { wrong } = lookThrough(memory, [key], needles, scratch);
    rmSync(join(memory, name));
    if (!wrong.some((what) => what.startsWith(name))) throw new Error(`a planted leftover was not reported: ${name}`);
  }
}
