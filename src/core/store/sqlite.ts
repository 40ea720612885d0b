import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type Package from 'better-sqlite3';

/** Where systems with musl have what starts every program. */
const MUSL: Partial<Record<NodeJS.Architecture, string>> = {
  x64: '/lib/ld-musl-x86_64.so.1',
  arm64: '/lib/ld-musl-aarch64.so.1',
};

/**
 * On Linux the package asks for a report of the whole process to tell glibc from musl, 2 ms of every start. Where there can be no
 * musl its own entry for the platform is the same without that question.
 */
function entry(): string {
  const musl = MUSL[process.arch];
  return process.platform !== 'linux' || musl === undefined || existsSync(musl)
    ? 'better-sqlite3'
    : `better-sqlite3/linux-${process.arch}`;
}

const load = createRequire(import.meta.url);

export const Sqlite = load(entry()) as typeof Package;
