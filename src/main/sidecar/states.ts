import { Failure } from '../../contract/failure.ts';
import type { SidecarState } from '../../contract/status.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { SidecarFailure } from './sidecar-failure.ts';

export const OFF: SidecarState = { at: 'off' };

export const ASLEEP: SidecarState = {
  at: 'asleep',
  remedy: 'Embeddings start together with Helmdeck Memory. Start it with: helmdeck-memory serve',
};

const APPROVE =
  'Ollama was found. Check its path and SHA-256 with `helmdeck-memory embeddings status`, then approve Ollama with: helmdeck-memory embeddings approve';
const CHANGED = `The Ollama on this machine is not the one that you approved. If you updated Ollama, approve it again: helmdeck-memory embeddings approve`;

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

/** True for states in which Ollama need not be restarted when the owner turns embeddings on again. */
export const isHealthy = ({ at }: SidecarState): boolean => HEALTHY_STATES.has(at);
const HEALTHY_STATES: ReadonlySet<SidecarState['at']> = new Set(['starting', 'ready', 'pulling', 'no_model', 'asleep']);

/** Returns the failure for a request that the state does not allow. */
export function failureOf(state: SidecarState, clock?: Clock): Failure {
  switch (state.at) {
    case 'off':
      return unavailable('Embeddings are off. The owner can turn embeddings on with: helmdeck-memory embeddings on');
    case 'starting':
      return unavailable('Embeddings are starting; try again in a moment.', 2);
    case 'pulling':
      return unavailable('The embedding model is being downloaded; try again later.', 30);
    case 'failed': {
      const until = state.retry_at === undefined || !clock ? undefined : (Date.parse(state.retry_at) - clock.now()) / 1000;
      return unavailable(`${state.why} ${state.remedy}`, until === undefined ? undefined : Math.max(1, until));
    }
    case 'ready':
      return unavailable('Embeddings are ready again; send the request again.', 1);
    case 'asleep':
    case 'unapproved':
      return unavailable(`Embeddings are not available yet. ${state.remedy}`);
    case 'no_model':
      return unavailable(`The embedding model is not installed yet. ${state.remedy}`);
  }
}

export const embeddingTimedOut = (seconds: number): Failure =>
  unavailable(`The texts were not embedded within ${seconds} seconds; send fewer texts per request, or try again later.`);

export const embeddingAbandoned = (): Failure => unavailable('The request was cancelled; send the request again if needed.');

const unavailable = (message: string, retryAfter?: number): Failure =>
  new Failure('embeddings_unavailable', message, retryAfter === undefined ? {} : { retryAfter });
