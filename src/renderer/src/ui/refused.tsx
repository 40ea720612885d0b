import { Failure } from '../../../contract/failure.ts';

/** Why there is nothing to show. Where the key is away, the banner over the page says so already. */
export function Refused({ error }: { error: Error | null }) {
  if (!error || (error instanceof Failure && error.code === 'key_unavailable')) return undefined;
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
