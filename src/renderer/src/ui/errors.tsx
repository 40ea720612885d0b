import { Failure } from '../../../contract/failure.ts';

/** The banner already reports an unavailable key, so pages do not repeat it. */
export const isKeyUnavailable = (error: Error | null | undefined): boolean =>
  error instanceof Failure && error.code === 'key_unavailable';

/** The reason why data could not be loaded. */
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
