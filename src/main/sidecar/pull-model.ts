import type { EmbeddingsReport } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import type { Clock } from '../../core/time/clock.ts';
import { inMegabytes, knownModel } from './models.ts';
import type { OllamaClient } from './ollama-client.ts';
import { SidecarFailure } from './sidecar-failure.ts';

/** Maximum layers of a model. Usual models have about five. */
const MAX_LAYERS = 1000;
/** Maximum different status texts of one download. Ollama sends a few per layer. */
const MAX_STATUSES = 3 * MAX_LAYERS;
const BETWEEN_STEPS_MS = 200;

interface PullOptions {
  readonly model: string;
  readonly clock: Clock;
  /** Maximum milliseconds without progress. */
  readonly timeoutMs: number;
  readonly cancel: AbortSignal;
}

/**
 * Downloads a model and yields progress a few times a second. Returns when the model is installed. Fails if there is no progress
 * within the timeout: neither more bytes nor a new status, even if messages keep arriving.
 */
export async function* pullModel(client: OllamaClient, { model, clock, timeoutMs, cancel }: PullOptions) {
  const layers = new Map<string, { done: number; of: number }>();
  const statuses = new Set<string>();
  let lastYield = -Infinity;
  let most = 0;
  let progressAt = clock.steady();
  for await (const { error, digest, total, completed, status } of client.pull(model, timeoutMs, cancel)) {
    if (error !== undefined) throw asPullFailure(new Error(error));
    if (status === 'success') return;
    if (digest !== undefined && total > 0) layers.set(digest, { done: Math.min(completed, total), of: total });
    const done = sum(layers, 'done');
    if (done > most || !statuses.has(status)) progressAt = clock.steady();
    most = Math.max(most, done);
    statuses.add(status);
    const stalled = clock.steady() - progressAt > timeoutMs;
    if (stalled || layers.size > MAX_LAYERS || statuses.size > MAX_STATUSES) throw new SidecarFailure('pull_failed');
    if (clock.steady() - lastYield < BETWEEN_STEPS_MS) continue;
    lastYield = clock.steady();
    yield { done, of: sum(layers, 'of') };
  }
  throw new SidecarFailure('pull_failed');
}

export function asPullFailure(error: unknown): SidecarFailure {
  if (error instanceof SidecarFailure && error.code === 'pull_failed') return error;
  const text = error instanceof Error ? error.message : '';
  if (!/no space left/i.test(text)) return new SidecarFailure('pull_failed');
  return new SidecarFailure('pull_failed', {
    why: 'The disk is full.',
    remedy: 'Free some disk space and download the model again: helmdeck-memory embeddings pull',
  });
}

export function requireDiskSpace(model: string, free: EmbeddingsReport['free']): void {
  const { disk } = knownModel(model) ?? {};
  if (disk === undefined || free.disk === undefined || free.disk > disk * 1.1) return;
  throw new Failure(
    'disk_full',
    `The model needs ${inMegabytes(disk)} of disk space, but only ${inMegabytes(free.disk)} are free. Free some space and download the model again.`,
  );
}

const sum = (layers: ReadonlyMap<string, { done: number; of: number }>, which: 'done' | 'of'): number =>
  [...layers.values()].reduce((all, layer) => all + layer[which], 0);
