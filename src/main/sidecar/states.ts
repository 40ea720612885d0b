import { Failure } from '../../contract/failure.ts';
import type { SidecarState } from '../../contract/status.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { SidecarFailure } from './sidecar-failure.ts';

export const OFF: SidecarState = { at: 'off' };

export const ASLEEP: SidecarState = {
  at: 'asleep',
  remedy: 'Embeddings start with the program; start it with: helmdeck-memory serve',
};

const APPROVE =
  'Ollama was found. Check its path and SHA-256 with helmdeck-memory embeddings status, then approve it with: helmdeck-memory embeddings approve';
const CHANGED = `This is not the Ollama that you approved. If you updated it, approve it again: helmdeck-memory embeddings approve`;

export const unapprovedState = (changed: boolean): SidecarState => ({
  at: 'unapproved',
  changed,
  remedy: changed ? CHANGED : APPROVE,
});

export const noModelState = (model: string): SidecarState => ({
  at: 'no_model',
  model,
  remedy: 'Download the model: helmdeck-memory embeddings pull',
});

export const failedState = ({ code: trouble, why, remedy }: SidecarFailure) => ({ at: 'failed', trouble, why, remedy }) as const;

/** States that turning on again need not restart. */
export const isHealthy = ({ at }: SidecarState): boolean => WELL.has(at);
const WELL: ReadonlySet<SidecarState['at']> = new Set(['starting', 'ready', 'pulling', 'no_model', 'asleep']);

/** The failure for a request that this state does not allow. */
export function failureOf(state: SidecarState, clock?: Clock): Failure {
  switch (state.at) {
    case 'off':
      return unavailable('Embeddings are off; the owner can turn them on with: helmdeck-memory embeddings on');
    case 'starting':
      return unavailable('Embeddings are starting; try again in a moment.', 2);
    case 'pulling':
      return unavailable('The model is being downloaded; try again later.', 30);
    case 'failed': {
      const until = state.retry_at === undefined || !clock ? undefined : (Date.parse(state.retry_at) - clock.now()) / 1000;
      return unavailable(`${state.why} ${state.remedy}`, until === undefined ? undefined : Math.max(1, until));
    }
    case 'ready':
      return unavailable('Embeddings are ready again; try again.', 1);
    case 'asleep':
    case 'unapproved':
      return unavailable(`Embeddings are not available yet. ${state.remedy}`);
    case 'no_model':
      return unavailable(`The model is not installed yet. ${state.remedy}`);
  }
}

export const embeddingTimedOut = (seconds: number): Failure =>
  unavailable(`The texts were not embedded within ${seconds} s; send fewer at once, or try again later.`);

export const embeddingAbandoned = (): Failure => unavailable('The request was cancelled; send it again if needed.');

const unavailable = (message: string, retryAfter?: number): Failure =>
  new Failure('embeddings_unavailable', message, retryAfter === undefined ? {} : { retryAfter });
