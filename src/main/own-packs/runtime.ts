import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export const inElectron = 'electron' in process.versions;

/** False in a packaged desktop app: starting its executable opens a second desktop app instead of Node. */
export const canBeNode = (): boolean => !inElectron || 'defaultApp' in process;

/**
 * Returns the environment of a pack's process. Contains none of our environment variables, because our variables hold keys and
 * give access to the keychain.
 */
export const nodeEnvironment = (): NodeJS.ProcessEnv => (inElectron ? { ELECTRON_RUN_AS_NODE: '1' } : {});

/** The files that a pack's process runs and is allowed to read. */
export interface Runtime {
  readonly main: string;
  /** Command line arguments: the path of the code for the pack's realm and, when running from sources, the path of zod. */
  readonly args: readonly string[];
  readonly files: readonly string[];
}

/** Finds the files of the runtime: next to this file when running from sources, next to the main program in a build. */
export function findRuntime(here = import.meta.dirname): Runtime {
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
