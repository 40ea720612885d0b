import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type Package from 'better-sqlite3';

/** The dynamic loader of musl, which exists on systems with musl. */
const MUSL: Partial<Record<NodeJS.Architecture, string>> = {
  x64: '/lib/ld-musl-x86_64.so.1',
  arm64: '/lib/ld-musl-aarch64.so.1',
};

/**
 * On Linux the package creates a report of the whole process to detect musl, which adds 2 ms to every start. Without the loader of
 * musl, the entry point for the platform loads the same binary faster.
 */
function entry(): string {
  const musl = MUSL[process.arch];
  return process.platform !== 'linux' || musl === undefined || existsSync(musl)
    ? 'better-sqlite3'
    : `better-sqlite3/linux-${process.arch}`;
}

const load = createRequire(import.meta.url);

export const Sqlite = load(entry()) as typeof Package;
