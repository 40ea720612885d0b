import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { OwnPacks, type OwnPacksOptions } from '../../src/main/own-packs/own-packs.ts';
import { readListedPack } from '../../src/main/own-packs/pack-file.ts';
import { findRuntime } from '../../src/main/own-packs/runtime.ts';
import { aCaller, openTestMemory } from './memory.ts';
import { tempFolder } from './temp-folder.ts';

export const OWN_PACK = 'test.own';

type Options = NonNullable<Parameters<typeof openTestMemory>[0]>;

interface Parts {
  /** The body of the handler. */
  readonly handler?: string;
  readonly input?: string;
  readonly output?: string;
  /** More properties, as source text. */
  readonly more?: string;
  /** Statements before the pack. */
  readonly before?: string;
}

/** The source of a pack file. */
export const packText = ({
  handler = 'return { said: input.what };',
  input = "what: z.string().default('nothing')",
  output = 'z.object({ said: z.string() })',
  more = '',
  before = '',
}: Parts = {}): string => `import { definePack, z } from 'helmdeck-memory/pack';
${before}
export default definePack({
  version: '1.0.0',
  title: 'Own',
  description: 'Does what a test wants.',
  input: z.object({ ${input} }),
  output: ${output},
  ${more}
  async handler(ec) {
    const { input } = ec;
    ${handler}
  },
});
`;

/** Writes the file into the packs folder. */
export function writePack(folder: string, text = packText(), name = OWN_PACK): string {
  mkdirSync(join(folder, 'packs'), { recursive: true, mode: 0o700 });
  const path = join(folder, 'packs', `${name}.mjs`);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** A memory with one own pack in it. Its runs are real processes. They run the build, which starts twice as fast as the sources. */
export async function openMemoryWithOwnPack(
  parts: Parts | string = {},
  {
    hear = () => undefined,
    egress,
    findConfinement: confined,
    findRuntime: runtime = () => findRuntime(resolve('out/main')),
    ...options
  }: Options & OwnPacksOptions & { readonly hear?: (text: string) => void } = {},
) {
  const folder = options.folder ?? tempFolder();
  writePack(folder, typeof parts === 'string' ? parts : packText(parts));
  const own = new OwnPacks({
    ...(options.clock && { clock: options.clock }),
    ...(egress && { egress }),
    ...(confined && { findConfinement: confined }),
    findRuntime: runtime,
  });
  onTestFinished(() => own[Symbol.dispose]());
  const logged: string[] = [];
  const log = (_name: string, text: string): void => {
    logged.push(text);
    hear(text);
  };
  const pack = await own.describe(readListedPack(folder, OWN_PACK));
  const memory = await openTestMemory({ ...options, folder, packs: { packs: [pack], log } });
  const run = (input: object = {}, session?: string) =>
    memory.as(aCaller())('runPack', { name: OWN_PACK, input: { ...input }, ...(session !== undefined && { session }) });
  return { ...memory, own, pack, logged, run };
}
