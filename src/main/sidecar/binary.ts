import { createHash } from 'node:crypto';
import { constants, createReadStream, realpathSync, statSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import type { HostMachine } from '../config/config.ts';
import { findUntrustedPath } from '../trusted-path.ts';
import { SidecarFailure } from './sidecar-failure.ts';

/** A file of the Ollama program. The hash identifies its exact content. */
export interface OllamaBinary {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
}

/**
 * Returns the paths at which Ollama's own installers put the program. PATH is not searched: anyone who can write to one of its
 * folders could choose the program that runs as the user (R-EMB-03).
 */
export function defaultPaths(machine: HostMachine): readonly string[] {
  const { platform, environment } = machine;
  if (platform === 'darwin') {
    return [
      '/Applications/Ollama.app/Contents/Resources/ollama',
      '/usr/local/bin/ollama',
      '/opt/homebrew/bin/ollama',
      ...inHome(machine, (home) => posix.join(home, 'Applications/Ollama.app/Contents/Resources/ollama')),
    ];
  }
  if (platform === 'win32') {
    return [
      ...inHome(machine, (home) => win32.join(home, 'AppData\\Local\\Programs\\Ollama\\ollama.exe')),
      win32.join(environment['ProgramFiles'] ?? 'C:\\Program Files', 'Ollama\\ollama.exe'),
    ];
  }
  return [
    '/usr/local/bin/ollama',
    '/usr/bin/ollama',
    '/opt/ollama/bin/ollama',
    '/home/linuxbrew/.linuxbrew/bin/ollama',
    ...inHome(machine, (home) => posix.join(home, '.local/bin/ollama')),
  ];
}

/** Where the owner can get Ollama, by platform. Inserted into a message. */
const SOURCES: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'https://ollama.com/download or with "brew install ollama"',
  win32: 'https://ollama.com/download or with "winget install Ollama.Ollama"',
  linux: 'https://ollama.com/download/linux or from your distribution',
};

const howToGet = (platform: NodeJS.Platform): string =>
  `Get Ollama from ${SOURCES[platform] ?? 'https://ollama.com/download'}, or set HELMDECK_OLLAMA to its path. Then run: helmdeck-memory embeddings on`;

/** Inspects the file at the first path that exists. Fails if that file is unusable, and does not try the next path. */
export async function findBinary(paths: readonly string[], platform: NodeJS.Platform): Promise<OllamaBinary> {
  try {
    return await inspectFirst(paths, platform);
  } catch (cause) {
    if (cause instanceof SidecarFailure) throw cause;
    const why = "The file at Ollama's path could not be read.";
    throw new SidecarFailure('not_installed', { why, remedy: howToGet(platform) }, { cause });
  }
}

async function inspectFirst(paths: readonly string[], platform: NodeJS.Platform): Promise<OllamaBinary> {
  const path = paths.find((one) => statSync(one, { throwIfNoEntry: false }));
  if (path === undefined) throw new SidecarFailure('not_installed', { remedy: howToGet(platform) });
  const real = realpathSync(path);
  // Check the owners and permissions of the path. On Windows, Node cannot read them, so only the hash is checked.
  const unsafe = findUntrustedPath(path);
  if (unsafe !== undefined) throw new SidecarFailure('unsafe', { path: unsafe });
  const stats = statSync(real);
  if (!stats.isFile() || (platform !== 'win32' && (stats.mode & constants.S_IXUSR) === 0)) {
    throw new SidecarFailure('not_installed', {
      why: "The file at Ollama's path is not a program.",
      remedy: howToGet(platform),
    });
  }
  return { path: real, size: stats.size, sha256: await hashOf(real) };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Returns a path in the user's home folder, or an empty list if the user has no home folder. */
function inHome(machine: HostMachine, path: (home: string) => string): readonly string[] {
  try {
    return [path(machine.home())];
  } catch {
    return [];
  }
}
