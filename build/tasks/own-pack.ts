import { build, type Rolldown } from 'vite';

/**
 * What runs the owner's own packs: the process, and the code in the realm of the pack, each as one file that needs no other.
 * Packs are given the whole of zod; built together with the program, which needs half of it, they would have every start load what
 * nobody there uses.
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
