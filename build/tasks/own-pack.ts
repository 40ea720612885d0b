import { build, type Rolldown } from 'vite';

export const OWN_PACK = 'own-pack.cjs';

/**
 * What runs the owner's own packs, as one file that needs no other. Packs are given the whole of zod; built together with the
 * program, which needs half of it, they would have every start load what nobody there uses.
 */
export async function ownPack(): Promise<string> {
  const built = (await build({
    configFile: false,
    logLevel: 'warn',
    ssr: { noExternal: true },
    build: {
      ssr: 'src/main/own-packs/child.ts',
      target: 'node24',
      write: false,
      rolldownOptions: { output: { format: 'cjs', codeSplitting: false } },
    },
  })) as Rolldown.RolldownOutput;
  const [{ code }] = built.output;
  return code;
}
