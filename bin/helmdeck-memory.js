#!/usr/bin/env node
// Starts the command line with a suitable Node. This file is plain JavaScript for Node 18 and later, because npx can run the
// file with an old Node.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, isAbsolute, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Oldest major version of Node that can run the program: the first with `using` and type stripping. */
const OLDEST = 24;
/** Exit code if there is no suitable Node, or the installation is incomplete. The same as EX_SOFTWARE in sysexits.h. */
const NO_NODE = 70;
/** Maximum number of symbolic links in a path, the same as in Linux. */
const MAX_LINKS = 40;

const root = dirname(dirname(realpathSync(fileURLToPath(import.meta.url))));
const source = join(root, 'src', 'main', 'roots', 'cli.ts');
const built = join(root, 'out', 'main', 'cli.cjs');
// Run the sources only outside node_modules, because Node does not strip types inside node_modules.
const unbuilt = !isFresh(built) && existsSync(source) && !root.includes(`${sep}node_modules${sep}`);
const program = unbuilt ? source : built;

if (!existsSync(program)) {
  console.error(
    `helmdeck-memory is incomplete: ${built} is missing. Reinstall helmdeck-memory, or run npm run build in its folder.`,
  );
  process.exitCode = NO_NODE;
} else if (isNewEnough(process.version) && (!unbuilt || process.features.typescript)) {
  hideStrippingWarning();
  await import(pathToFileURL(program).href);
} else {
  const node = findNode();
  if (node === undefined) {
    const named = process.env.HELMDECK_NODE ? ', nor in HELMDECK_NODE' : '';
    console.error(
      `helmdeck-memory needs Node ${OLDEST} or newer. This is ${process.version}, and there is no newer Node in the PATH${named}. Install it from https://nodejs.org, or set HELMDECK_NODE=/path/to/node.`,
    );
    process.exitCode = NO_NODE;
  } else await runWith(node);
}

/** Whether the build exists and is newer than all sources. The build starts twice as fast as the sources. */
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
  return Number(/^v(\d+)\./.exec(version)?.[1] ?? 0) >= OLDEST;
}

/** Finds a suitable Node: the bundled Node, then the Node in HELMDECK_NODE, then a Node in the PATH. */
function findNode() {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const bundled = above(root).map((folder) => join(folder, 'node_modules', `node-${platform}-${process.arch}`, 'bin', name));
  const named = process.env.HELMDECK_NODE ? [process.env.HELMDECK_NODE] : [];
  // Ignore relative folders in the PATH, because they could contain an untrusted program.
  const path = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute);
  const inPath = path.map((folder) => join(folder, name));
  const chosen = new Set([...named, process.execPath]);
  const all = [...bundled, ...named, ...inPath, process.execPath].filter(existsSync);
  const tried = new Set();
  return all.find((node) => {
    if (!chosen.has(node) && !isTrusted(node)) return false;
    const real = realpathSync(node);
    if (tried.has(real)) return false;
    tried.add(real);
    const { stdout } = spawnSync(node, ['--version'], {
      env: withoutSettings(ownEnvironment()),
      encoding: 'utf8',
      timeout: 5000,
      windowsHide: true,
    });
    return isNewEnough(stdout ?? '');
  });
}

/** Whether only this user and root can replace a file, also by changing a folder above it or a link in its path. */
function isTrusted(file, links = 0) {
  if (process.platform === 'win32') return true;
  return above(file).every((place) => {
    const stats = lstatSync(place, { throwIfNoEntry: false });
    if (stats === undefined || links > MAX_LINKS || (stats.uid !== 0 && stats.uid !== process.getuid())) return false;
    if (stats.isSymbolicLink()) {
      const target = readlinkSync(place);
      return isTrusted(isAbsolute(target) ? target : join(realpathSync(dirname(place)), target), links + 1);
    }
    // Trust the groups of root and of macOS administrators, and the user's private group, whose id equals the user's id.
    const isOwnGroup = [0, process.getuid(), process.platform === 'darwin' ? 80 : 0].includes(stats.gid);
    const isWritable = (stats.mode & 0o002) !== 0 || ((stats.mode & 0o020) !== 0 && !isOwnGroup);
    // In a sticky folder, users can replace only their own files.
    return !isWritable || (stats.isDirectory() && (stats.mode & 0o1000) !== 0);
  });
}

/** Returns the folder and all its parents, because npm can install the bundled Node in any of them. */
function above(folder) {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...above(parent)];
}

/** Returns the environment without NODE_OPTIONS, because another version of Node can refuse these options. */
function ownEnvironment() {
  const { NODE_OPTIONS: _, ...rest } = process.env;
  return rest;
}

/** Removes Helmdeck's variables, because a Node that only prints its version must not get the key. */
function withoutSettings(environment) {
  return Object.fromEntries(Object.entries(environment).filter(([variable]) => !variable.startsWith('HELMDECK_')));
}

/** Runs the program with another Node in this terminal, and forwards signals and the exit code. */
function runWith(node) {
  const args = ['--disable-sigusr1', '--disable-warning=ExperimentalWarning', program, ...process.argv.slice(2)];
  const child = spawn(node, args, { stdio: 'inherit', env: ownEnvironment() });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // On Windows, the child also receives Ctrl+C directly, and `kill` would terminate the child without any cleanup.
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

/** Hides the warning "type stripping is experimental" of older Node versions. */
function hideStrippingWarning() {
  const { emitWarning } = process;
  process.emitWarning = (warning, ...more) => {
    if (/type stripping/i.test(String(warning))) return;
    emitWarning.call(process, warning, ...more);
  };
}
