import { createHash } from 'node:crypto';
import { constants, createReadStream, realpathSync, statSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import type { HostMachine } from '../config/config.ts';
import { findUntrustedPath } from '../trusted-path.ts';
import { SidecarFailure } from './sidecar-failure.ts';

/** Exactly one program: another one of the same name is another one. */
export interface OllamaBinary {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
}

/**
 * Where Ollama lies when its own installers put it there. Never what PATH leads to: a program that can write one folder of it
 * would decide what runs as us (R-EMB-03).
 */
export function defaultPaths(machine: HostMachine): readonly string[] {
  const { platform, environment } = machine;
  if (platform === 'darwin') {
    return [
      '/Applications/Ollama.app/Contents/Resources/ollama',
      '/usr/local/bin/ollama',
      '/opt/homebrew/bin/ollama',
      ...within(machine, (home) => posix.join(home, 'Applications/Ollama.app/Contents/Resources/ollama')),
    ];
  }
  if (platform === 'win32') {
    return [
      ...within(machine, (home) => win32.join(home, 'AppData\\Local\\Programs\\Ollama\\ollama.exe')),
      win32.join(environment['ProgramFiles'] ?? 'C:\\Program Files', 'Ollama\\ollama.exe'),
    ];
  }
  return [
    '/usr/local/bin/ollama',
    '/usr/bin/ollama',
    '/opt/ollama/bin/ollama',
    '/home/linuxbrew/.linuxbrew/bin/ollama',
    ...within(machine, (home) => posix.join(home, '.local/bin/ollama')),
  ];
}

/** Where it comes from on systems of a kind. */
const SOURCES: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'https://ollama.com/download or with "brew install ollama"',
  win32: 'https://ollama.com/download or with "winget install Ollama.Ollama"',
  linux: 'https://ollama.com/download/linux or from your distribution',
};

/** What to do where there is none. */
const howToGet = (platform: NodeJS.Platform): string =>
  `Get it from ${SOURCES[platform] ?? 'https://ollama.com/download'}, or say with HELMDECK_OLLAMA where it lies; then: helmdeck-memory embeddings on`;

/** The first of them that is there. What is wrong with it is a trouble; a second one does not step in for it. */
export async function findBinary(paths: readonly string[], platform: NodeJS.Platform): Promise<OllamaBinary> {
  try {
    return await lookedAt(paths, platform);
  } catch (cause) {
    if (cause instanceof SidecarFailure) throw cause;
    const why = 'What lies where Ollama should be cannot be read by you.';
    throw new SidecarFailure('not_installed', { why, remedy: howToGet(platform) }, { cause });
  }
}

async function lookedAt(paths: readonly string[], platform: NodeJS.Platform): Promise<OllamaBinary> {
  const path = paths.find((one) => statSync(one, { throwIfNoEntry: false }));
  if (path === undefined) throw new SidecarFailure('not_installed', { remedy: howToGet(platform) });
  const real = realpathSync(path);
  // Windows tells owners and rights by lists that Node does not read; there the hash stands alone.
  const unsafe = findUntrustedPath(path);
  if (unsafe !== undefined) throw new SidecarFailure('unsafe', { path: unsafe });
  const stats = statSync(real);
  if (!stats.isFile() || (platform !== 'win32' && (stats.mode & constants.S_IXUSR) === 0)) {
    throw new SidecarFailure('not_installed', {
      why: 'What lies where Ollama should be is no program.',
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

/** A user without a home has none of its places. */
function within(machine: HostMachine, place: (home: string) => string): readonly string[] {
  try {
    return [place(machine.home())];
  } catch {
    return [];
  }
}
