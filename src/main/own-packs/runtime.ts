import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export const inElectron = 'electron' in process.versions;

/** Packed, Electron does not start as Node, but as a second desktop. */
export const canBeNode = (): boolean => !inElectron || 'defaultApp' in process;

/** Nothing of ours: our environment holds keys, and the way to the keychain. */
export const nodeEnvironment = (): NodeJS.ProcessEnv => (inElectron ? { ELECTRON_RUN_AS_NODE: '1' } : {});

/** What a pack's process runs, and which files it reads for that. */
export interface Runtime {
  readonly main: string;
  /** For its command line: the code for the pack's realm and, where that is not built into one file, zod. */
  readonly args: readonly string[];
  readonly files: readonly string[];
}

/** Beside this file as sources, and beside the program when it is built. */
export function findRuntime(): Runtime {
  const here = import.meta.dirname;
  if (existsSync(join(here, 'child.ts'))) {
    const zod = dirname(createRequire(import.meta.url).resolve('zod/package.json'));
    const [main, realm] = [join(here, 'child.ts'), join(here, 'realm')];
    return { main, args: [join(realm, 'realm.ts'), join(zod, 'index.js')], files: [main, realm, zod] };
  }
  const folder = [here, dirname(here)].find((path) => existsSync(join(path, BUILT.main))) ?? here;
  const [main, realm] = [join(folder, BUILT.main), join(folder, BUILT.realm)];
  return { main, args: [realm], files: [main, realm] };
}

const BUILT = { main: 'own-pack.mjs', realm: 'own-pack-realm.mjs' } as const;
