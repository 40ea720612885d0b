import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';
import { writeDurableFile } from '../../core/file/files.ts';

const Choice = lazy(() =>
  z.strictObject({
    on: z.boolean(),
    adopt: z.boolean(),
    approved: z.strictObject({ path: z.string(), size: z.number(), sha256: z.string() }).exactOptional(),
  }),
);
/** The owner's choice of embeddings, stored next to the memory. Applies each time the program starts. */
export type EmbeddingsChoice = SchemaOutput<typeof Choice>;

const DEFAULT: EmbeddingsChoice = { on: false, adopt: false };
const FILE = 'embeddings.json';

/** Reads the stored choice. If the file cannot be read, embeddings are off and no program is approved. */
export function readChoice(folder: string): EmbeddingsChoice {
  try {
    const stored: unknown = JSON.parse(readFileSync(join(folder, FILE), 'utf8'));
    return Choice().parse(stored);
  } catch {
    return DEFAULT;
  }
}

export const saveChoice = (folder: string, choice: EmbeddingsChoice): void =>
  writeDurableFile(join(folder, FILE), `${JSON.stringify(choice, null, 2)}\n`);
