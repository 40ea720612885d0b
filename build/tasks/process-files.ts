import { build, type Rolldown } from 'vite';

/**
 * Builds the files of child processes: the process of own packs, the code inside the pack's realm, and the process of the bundled
 * model. Each file is self-contained, because these processes can read few files. The files of packs are also built separately
 * because packs get all of zod, and the program would otherwise load all of it at every start.
 */
const FILES = {
  'own-pack.mjs': 'src/main/own-packs/child.ts',
  'own-pack-realm.mjs': 'src/main/own-packs/realm/realm.ts',
  'model-process.mjs': 'src/main/meaning/model-process.ts',
} as const;

export const processFiles = (): Promise<{ fileName: string; source: string }[]> =>
  Promise.all(Object.entries(FILES).map(async ([fileName, entry]) => ({ fileName, source: await built(entry) })));

async function built(entry: string): Promise<string> {
  const { output } = (await build({
    configFile: false,
    logLevel: 'warn',
    ssr: { noExternal: true },
    build: {
      ssr: entry,
      target: 'node24',
      write: false,
      rolldownOptions: { output: { format: 'es', codeSplitting: false } },
    },
  })) as Rolldown.RolldownOutput;
  return output[0].code;
}
