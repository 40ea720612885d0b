import { useToast } from './toast.tsx';

/** Text to be taken elsewhere, exactly as it stands. */
export function Copyable({ text, name }: { text: string; name: string }) {
  const { say } = useToast();
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => say({ text: 'Copied.' }, 2000),
      () => say({ text: 'This browser lets nothing be copied here; select the text instead.' }),
    );
  };
  return (
    <div className="copyable">
      <pre>{text}</pre>
      <button type="button" className="button" onClick={copy} aria-label={`Copy ${name}`}>
        Copy
      </button>
    </div>
  );
}
