import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { later, type Of } from '../../contract/later.ts';
import { writeDurably } from '../../core/files.ts';

const Choice = later(() =>
  z.strictObject({
    on: z.boolean(),
    adopt: z.boolean(),
    approved: z.strictObject({ path: z.string(), size: z.number(), sha256: z.string() }).exactOptional(),
  }),
);
/** What the owner chose, kept beside the memory and in force from start to start. */
export type Choice = Of<typeof Choice>;

const NOTHING: Choice = { on: false, adopt: false };
const FILE = 'embeddings.json';

/** What cannot be read asks for nothing: then embeddings are off, and nothing is approved. */
export function readChoice(folder: string): Choice {
  try {
    const kept: unknown = JSON.parse(readFileSync(join(folder, FILE), 'utf8'));
    return Choice().parse(kept);
  } catch {
    return NOTHING;
  }
}

export const keepChoice = (folder: string, choice: Choice): void =>
  writeDurably(join(folder, FILE), `${JSON.stringify(choice, null, 2)}\n`);
