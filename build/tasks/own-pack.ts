import { build, type Rolldown } from 'vite';

/**
 * Builds the two files that run own packs: the child process and the code inside the pack's realm. Each file is self-contained.
 * They are built separately because packs get all of zod, and the program would otherwise load all of it at every start.
 */
const FILES = {
  'own-pack.mjs': 'src/main/own-packs/child.ts',
  'own-pack-realm.mjs': 'src/main/own-packs/realm/realm.ts',
} as const;

export const ownPackFiles = (): Promise<{ fileName: string; source: string }[]> =>
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
