import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export const inElectron = 'electron' in process.versions;

/** A packaged Electron starts as a second desktop instead of as Node. */
export const canBeNode = (): boolean => !inElectron || 'defaultApp' in process;

/** Passes none of our environment, which holds keys and gives access to the keychain. */
export const nodeEnvironment = (): NodeJS.ProcessEnv => (inElectron ? { ELECTRON_RUN_AS_NODE: '1' } : {});

/** What a pack's process runs, and which files it may read. */
export interface Runtime {
  readonly main: string;
  /** Command line arguments: the code for the pack's realm and, when running from sources, zod. */
  readonly args: readonly string[];
  readonly files: readonly string[];
}

/** Beside this file when running from sources, beside the program when built. */
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
