import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { asFailure } from '../../../../src/contract/failure.ts';
import { openKeptStore } from '../memory.ts';
import type { Tell } from '../worker.ts';

interface Given {
  readonly folder: string;
  /** All workers start when this file appears. */
  readonly signal: string;
}

/** Opens the memory and holds it until killed, or reports the failure. */
export async function holdTheFolder({ folder, signal }: Given, tell: Tell): Promise<void> {
  tell({ says: 'ready', pid: process.pid });
  while (!existsSync(signal)) await wait(1);
  const from = performance.now();
  const took = (): number => Math.round(performance.now() - from);
  try {
    await openKeptStore(folder);
    tell({ says: 'done', figures: { how: 'holds', ms: took() } });
    setInterval(() => undefined, 60_000);
  } catch (error) {
    tell({ says: 'done', figures: { how: asFailure(error).code, ms: took() } });
  }
}
