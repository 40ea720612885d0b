#!/usr/bin/env node
// Starts the command line on a Node that can run it. Plain JavaScript that any Node from 18 on reads: it is often an older
// one that meets this file first, as with npx.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, isAbsolute, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The first with `using`, and with TypeScript as it stands. */
const LEAST = 24;
/** As sysexits.h numbers what is wrong with the machine, not with the question. */
const NO_NODE = 70;

const root = dirname(dirname(realpathSync(fileURLToPath(import.meta.url))));
const source = join(root, 'src', 'main', 'cli.ts');
const built = join(root, 'out', 'main', 'cli.cjs');
// Node takes no types off below node_modules.
const unbuilt = !isFresh(built) && existsSync(source) && !root.includes(`${sep}node_modules${sep}`);
const program = unbuilt ? source : built;

if (!existsSync(program)) {
  console.error(`helmdeck-memory is not complete: ${built} is missing; install it anew, or run npm run build in its folder.`);
  process.exitCode = NO_NODE;
} else if (isNewEnough(process.version) && (!unbuilt || process.features.typescript)) {
  hushStripping();
  await import(pathToFileURL(program).href);
} else {
  const node = findNode();
  if (node === undefined) {
    const named = process.env.HELMDECK_NODE ? ', and HELMDECK_NODE names none' : '';
    console.error(
      `helmdeck-memory needs Node ${LEAST} or newer, this is ${process.version} and no newer one is in the PATH${named}; get it from https://nodejs.org, or name one with HELMDECK_NODE=/path/to/node.`,
    );
    process.exitCode = NO_NODE;
  } else await passOn(node);
}

/** Built starts in half the time; but in a checkout, what was built before the last change is another program. */
function isFresh(file) {
  return existsSync(file) && newestIn(join(root, 'src')) <= statSync(file).mtimeMs;
}

function newestIn(folder) {
  if (!existsSync(folder)) return 0;
  const times = readdirSync(folder, { withFileTypes: true }).map((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? newestIn(path) : (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  });
  return Math.max(0, ...times);
}

function isNewEnough(version) {
  return Number(/^v(\d+)\./.exec(version)?.[1] ?? 0) >= LEAST;
}

/** The one that came along, the one that was named, then what the PATH has. */
function findNode() {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const along = above(root).map((folder) => join(folder, 'node_modules', `node-${platform}-${process.arch}`, 'bin', name));
  const named = process.env.HELMDECK_NODE ? [process.env.HELMDECK_NODE] : [];
  // A relative folder would be one of wherever we are started, and so would be what is run.
  const path = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute);
  const all = [...along, ...named, ...path.map((folder) => join(folder, name)), process.execPath];
  const tried = new Set();
  return all.filter(existsSync).find((node) => {
    const real = realpathSync(node);
    if (tried.has(real)) return false;
    tried.add(real);
    const { stdout } = spawnSync(node, ['--version'], {
      env: ownEnvironment(),
      encoding: 'utf8',
      timeout: 5000,
      windowsHide: true,
    });
    return isNewEnough(stdout ?? '');
  });
}

/** Installed beside others, a package of ours lies in a folder further up. */
function above(folder) {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...above(parent)];
}

/** What NODE_OPTIONS asks was meant for the Node that was left, and another one may refuse to start with it. */
function ownEnvironment() {
  const { NODE_OPTIONS: _, ...rest } = process.env;
  return rest;
}

/** The same terminal, the same pipes; what ends this process ends the other one, and the other way round. */
function passOn(node) {
  const args = ['--disable-sigusr1', '--disable-warning=ExperimentalWarning', program, ...process.argv.slice(2)];
  const child = spawn(node, args, { stdio: 'inherit', env: ownEnvironment() });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // Windows tells both itself, and to send a signal there is to end a process at once.
      if (process.platform !== 'win32') child.kill(signal);
    });
  }
  return new Promise((resolve) => {
    child.on('error', ({ message }) => {
      console.error(`helmdeck-memory cannot start ${node}: ${message}`);
      process.exitCode = NO_NODE;
      resolve();
    });
    child.on('close', (code, signal) => {
      process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
      resolve();
    });
  });
}

/** Older Nodes say on every start that taking types off is an experiment. Whoever remembers a fact need not know. */
function hushStripping() {
  const { emitWarning } = process;
  process.emitWarning = (warning, ...more) => {
    if (/type stripping/i.test(String(warning))) return;
    emitWarning.call(process, warning, ...more);
  };
}
