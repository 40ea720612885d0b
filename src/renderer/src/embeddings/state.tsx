import type { OperationOutput } from '../../../contract/operations.ts';
import { GB, MB } from '../../../contract/units.ts';
import { ErrorText } from '../ui/errors.tsx';
import { When } from '../ui/when.tsx';

export type Report = OperationOutput<'embeddings'>;
type State = Report['state'];

export function StateText({ state, failure }: { state: State; failure: string | undefined }) {
  return (
    <>
      <div role="status" aria-label="State of Ollama">
        <p>
          <strong>{titleOf(state)}</strong>
        </p>
        <StateDetails state={state} />
      </div>
      <ErrorText text={failure} />
    </>
  );
}

function StateDetails({ state }: { state: State }) {
  switch (state.at) {
    case 'off':
    case 'starting':
    case 'ready':
      return undefined;
    case 'pulling':
      return (
        <>
          <progress
            aria-label="Downloaded"
            max={state.of === 0 ? undefined : state.of}
            value={state.of === 0 ? undefined : state.done}
          />
          <p className="quiet number">
            {state.of === 0 ? 'Looking for the model…' : `${sizeText(state.done)} of ${sizeText(state.of)}`}
          </p>
        </>
      );
    case 'failed':
      return <FailedState {...state} />;
    case 'asleep':
    case 'unapproved':
    case 'no_model':
      return <p>{state.remedy}</p>;
  }
}

function titleOf(state: State): string {
  switch (state.at) {
    case 'off':
      return 'Off';
    case 'asleep':
      return 'On, but Helmdeck Memory is not running';
    case 'starting':
      return 'Starting…';
    case 'unapproved':
      return state.changed ? 'Ollama has changed' : 'Ollama needs your approval';
    case 'no_model':
      return 'The model is not downloaded';
    case 'pulling':
      return 'Downloading the model…';
    case 'ready':
      return READY[state.whose];
    case 'failed':
      return 'Not available';
  }
}

const READY = {
  own: 'Ready',
  adopted: 'Ready, with the Ollama that you chose',
  bundled: 'Off: agents get vectors of the bundled model',
} as const;

interface FailedStateProps {
  readonly why: string;
  readonly remedy: string;
  readonly retry_at?: string;
}

export function FailedState({ why, remedy, retry_at: retryAt }: FailedStateProps) {
  return (
    <p className="warned">
      {why} {remedy}
      {retryAt !== undefined && (
        <>
          {' '}
          Next attempt: <When at={retryAt} />.
        </>
      )}
    </p>
  );
}

export const sizeText = (bytes: number): string =>
  bytes < GB
    ? `${Math.round(bytes / MB).toLocaleString()} MB`
    : `${(bytes / GB).toLocaleString(undefined, { maximumFractionDigits: 1 })} GB`;
