import { Failure } from '../../../contract/failure.ts';

/** Where the key is away, the banner over the page says so already, and what to do. */
export const isAway = (error: Error | null | undefined): boolean => error instanceof Failure && error.code === 'key_unavailable';

/** Why there is nothing to show. */
export function Refused({ error }: { error: Error | null }) {
  if (!error || isAway(error)) return undefined;
  return <Failed text={error.message} />;
}

export function Failed({ text }: { text: string | undefined }) {
  if (text === undefined) return undefined;
  return (
    <p className="failure" role="alert">
      {text}
    </p>
  );
}
