import { Failure } from '../../../contract/failure.ts';

/** Whether the error means that the key is unavailable. Pages do not show this error, because the banner reports it. */
export const isKeyUnavailable = (error: Error | null | undefined): boolean =>
  error instanceof Failure && error.code === 'key_unavailable';

export function LoadError({ error }: { error: Error | null }) {
  if (!error || isKeyUnavailable(error)) return undefined;
  return <ErrorText text={error.message} />;
}

export function ErrorText({ text }: { text: string | undefined }) {
  if (text === undefined) return undefined;
  return (
    <p className="failure" role="alert">
      {text}
    </p>
  );
}
